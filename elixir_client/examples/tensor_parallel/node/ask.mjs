// Asks a gang that something else has started for many texts at once, and again for those that a lost rank has cut off.
// Usage: node ask.mjs PROTO_FOLDER ENDPOINTS_FILE REQUESTS LENGTH. Ends with 1 if an answer is wrong.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [protoFolder, endpointsFile, requests, length] = process.argv.slice(2);
const SECONDS = 120;
// Errors of calls that the loss of a rank cut off. Completing a text changes nothing, so the call is safe to repeat.
const OF_LOSSES = ["PEER_LOST", "NOT_FORMED", "STALE_GENERATION"].map((code) => `ERROR_CODE_${code}`);

const files = ["gang", "function", "rank"].map((name) => `rankbridge/v1/${name}_service.proto`);
const reading = { keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true };
const definitions = loader.loadSync(files, { ...reading, includeDirs: [protoFolder] });
const api = grpc.loadPackageDefinition(definitions).rankbridge.v1;

const gang = JSON.parse(readFileSync(endpointsFile, "utf8"));
const endpoints = gang.ranks.map((rank) => rank.endpoints[0]); // a unix socket, if there is one
const insecure = grpc.credentials.createInsecure();
// A rank that takes another's place has its endpoints: calls wait until it is there.
const shown = new grpc.Metadata({ waitForReady: true });
shown.set("authorization", `Bearer ${gang.tokens.drive}`);
const gangs = new api.GangService(endpoints[0], insecure);
const functions = new api.FunctionService(endpoints[0], insecure);
const ranks = endpoints.map((endpoint) => new api.RankService(endpoint, insecure));

// The newest generation, and who waits for a newer one. Every rank says; those that are left when one is lost go on.
let formed = 0;
let waiting = [];
let open = true;
for (const rank of ranks) watch(rank);

async function watch(rank) {
  while (open) {
    try {
      const request = { kinds: ["EVENT_KIND_FORMED"], after: 0 };
      for await (const response of rank.WatchEvents(request, shown)) {
        formed = Math.max(formed, response.event?.generation ?? 0);
        waiting = waiting.filter(({ after, resolve }) => formed <= after || resolve());
      }
    } catch {
      // The rank is lost, or this program ends.
    }
    if (open) await pause(200);
  }
}

const formedAfter = (after) =>
  formed > after ? null : new Promise((resolve) => waiting.push({ after, resolve }));

const unary = (client, method, request) =>
  new Promise((resolve, reject) => {
    const answered = (failure, response) => (failure ? reject(failure) : resolve(response));
    client[method](request, shown, { deadline: Date.now() + SECONDS * 1000 }, answered);
  });

// A value as JavaScript has it: of those kinds that answers are made of.
function read(value) {
  if (value.kind === "map")
    return Object.fromEntries(value.map.entries.map((it) => [read(it.key), read(it.value)]));
  return value.kind === "list" ? value.list.items.map(read) : value[value.kind];
}

const asked = (name, text) => ({
  function: name,
  arguments: [{ value: { text } }, { name: "length", value: { int: Number(length) } }],
});

// What every rank answers, or the loss that has cut the call off. Throws any other error.
async function complete(text) {
  const generation = formed;
  const call = { operation_id: randomUUID(), timeout_ms: SECONDS * 1000 };
  let errors;
  try {
    const operations = [{ call_function: asked("complete", text) }];
    const response = await unary(gangs, "Call", { call, operations });
    const results = response.error ? [response] : response.outcomes.members.map((member) => member.result);
    errors = results.map((result) => result.error).filter(Boolean);
    if (!errors.length) return { text, answers: results.map((result) => read(result.value)) };
  } catch (failure) {
    if (failure.code !== grpc.status.UNAVAILABLE) throw failure;
    return { text, generation, lost: `UNAVAILABLE: ${failure.details}` };
  }
  const [{ code, message }] = errors;
  if (!errors.every((error) => OF_LOSSES.includes(error.code))) throw new Error(`${code}: ${message}`);
  const newest = Math.max(generation, ...errors.map((error) => error.generation));
  return { text, generation: newest, lost: `${code}: ${message}` };
}

// Whether all ranks have given the same answer, and one rank with all weights gives it, too.
async function right({ text, answers }) {
  const response = await unary(functions, "CallFunction", {
    call: { operation_id: randomUUID(), timeout_ms: SECONDS * 1000 },
    ...asked("complete_alone", text),
    alone: true,
  });
  if (response.error) throw new Error(response.error.message);
  const alone = read(response.value);
  const [first, ...others] = answers;
  return (
    others.every((it) => JSON.stringify(it) === JSON.stringify(first)) &&
    first.text === alone.text &&
    first.scores.every((score, place) => Math.abs(score - alone.scores[place]) < 1e-3)
  );
}

const began = Date.now();
const done = [];
const lost = [];
let texts = Array.from({ length: Number(requests) }, (_, number) => `Node asks ${number + 1}: `);
await formedAfter(0);
while (texts.length) {
  // All at once.
  const outcomes = await Promise.all(
    texts.map(async (text) => {
      const outcome = await complete(text);
      if (outcome.answers && done.push(outcome) % Math.ceil(requests / 4) === 0)
        console.log(`Node: ${done.length} of ${requests} answers`);
      return outcome;
    }),
  );
  const cutOff = outcomes.filter((outcome) => outcome.lost);
  lost.push(...cutOff);
  texts = cutOff.map((outcome) => outcome.text);
  const newest = Math.max(...cutOff.map((outcome) => outcome.generation));
  if (texts.length) await Promise.race([formedAfter(newest), pause(1000)]);
}
console.log(`Node: ${done.length} answers in ${Date.now() - began} ms, ${lost.length} cut off and asked again`);
if (lost.length) console.log(`  "${lost[0].text}": ${lost[0].lost}`);

const wrong = (await Promise.all(done.map(right))).filter((it) => !it).length;
console.log(wrong ? `Node: ${wrong} are wrong` : "Node: all are what one rank with all weights answers");
open = false;
process.exit(wrong ? 1 : 0);
