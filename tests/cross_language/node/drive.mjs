// Drives a gang of four ranks from Node: @grpc/grpc-js and the plain proto files, nothing generated.
// Usage: node drive.mjs PROTO_FOLDER TOKEN ENDPOINT_OF_RANK_0 ... ENDPOINT_OF_RANK_3
// Prints what it saw as one line of JSON; any failure that it did not ask for ends it with another status.
import { randomUUID } from "node:crypto";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [protoFolder, token, ...endpoints] = process.argv.slice(2);
const READING = { keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true };
const SERVICES = { refs: "RefService", collectives: "CollectiveService", ranks: "RankService" };
const SECONDS = 30;

const files = ["ref", "collective", "rank"].map((name) => `rankbridge/v1/${name}_service.proto`);
const definitions = loader.loadSync(files, { ...READING, includeDirs: [protoFolder] });
const api = grpc.loadPackageDefinition(definitions).rankbridge.v1;

// One rank: a client for each service.
function connect(endpoint) {
  const credentials = grpc.credentials.createInsecure();
  return Object.fromEntries(
    Object.entries(SERVICES).map(([name, service]) => [name, new api[service](endpoint, credentials)]),
  );
}

// What a rank is shown over TCP; over a unix socket it changes nothing.
const shown = new grpc.Metadata();
shown.set("authorization", `Bearer ${token}`);

const deadline = () => ({ deadline: Date.now() + SECONDS * 1000 });

// The outcome of a unary call; gRPC's own failures reject.
function outcome(client, method, request) {
  return new Promise((resolve, reject) => {
    const answered = (failure, response) => (failure ? reject(failure) : resolve(response));
    client[method](request, shown, deadline(), answered);
  });
}

// The value of an outcome; an error rejects.
function value(response) {
  if (response.outcome === "error") throw new Error(`${response.error.code}: ${response.error.message}`);
  return response[response.outcome];
}

const ranks = endpoints.map(connect);
const onAll = (act) => Promise.all(ranks.map((rank, index) => act(rank, index)));

const create = (rank, shape, element, dtype = "DTYPE_FLOAT32") =>
  outcome(rank.refs, "CreateTensor", { tensor: { dtype, shape }, full: element }).then(value);

function put(rank, elements) {
  return new Promise((resolve, reject) => {
    const answered = (failure, response) => (failure ? reject(failure) : resolve(response));
    const stream = rank.refs.PutTensor(shown, deadline(), answered);
    stream.write({ header: { tensor: { dtype: "DTYPE_FLOAT32", shape: [elements.length] } } });
    const bytes = Buffer.from(Float32Array.from(elements).buffer);
    stream.write({ chunk: bytes.subarray(0, 5) }); // ends within an element, as it may
    stream.write({ chunk: bytes.subarray(5) });
    stream.end();
  }).then(value);
}

async function get(rank, ref) {
  const chunks = [];
  let shape = null;
  for await (const part of rank.refs.GetTensor({ ref_id: ref.id }, shown, deadline())) {
    if (part.part === "error") throw new Error(`${part.error.code}: ${part.error.message}`);
    if (part.part === "tensor") shape = part.tensor.shape;
    else chunks.push(part.chunk);
  }
  const bytes = Buffer.concat(chunks);
  const aligned = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  return { shape, elements: Array.from(new Float32Array(aligned)) };
}

// One collective on all ranks at once, on a ref of each or on none; each rank's outcome, by rank.
function collective(method, refs, parameters) {
  const call = { operation_id: randomUUID(), timeout_ms: SECONDS * 1000 };
  return onAll((rank, index) =>
    outcome(rank.collectives, method, { call, ...(refs && { ref_id: refs[index].id }), ...parameters }),
  );
}

// The refs that a collective gives, by rank.
const refsOf = async (method, refs, parameters) =>
  (await collective(method, refs, parameters)).map((response) => value(response).ref);

const codes = (responses) => responses.map((response) => response.error?.code ?? "OK");

const seen = {};
seen.described = (await onAll((rank) => outcome(rank.ranks, "DescribeRank", {}))).map((described) => ({
  rank: described.rank,
  world_size: described.world_size,
  state: described.generation_state,
}));

const made = await onAll((rank, index) => create(rank, [2, 3], { float: index + 1 }));
const sums = await refsOf("AllReduce", made, { op: "REDUCE_OP_SUM" });
seen.all_reduce = await onAll((rank, index) => get(rank, sums[index]));
seen.input_after_all_reduce = await onAll((rank, index) => get(rank, made[index]));

const brought = await onAll((rank, index) => put(rank, [index, index + 0.5]));
const spread = await refsOf("Broadcast", brought, { src_rank_in_group: 2 });
seen.broadcast = await onAll((rank, index) => get(rank, spread[index]));
const gathered = (await collective("Gather", brought, { dst_rank_in_group: 1 })).map(value);
seen.gather_kinds = gathered.map((result) => result.kind);
seen.gather = await get(ranks[1], gathered[1].ref);
seen.barrier = codes(await collective("Barrier", null, {}));

const whole = await onAll((rank) => create(rank, [2], { int: 3 }, "DTYPE_INT64"));
const nowhere = ranks.map(() => ({ id: "no-such-ref" }));
const unequal = [...brought.slice(0, 3), made[3]];
seen.errors = {
  unknown_ref: codes(await collective("AllReduce", nowhere, {})),
  rank_out_of_range: codes(await collective("Broadcast", brought, { src_rank_in_group: 4 })),
  average_of_integers: codes(await collective("AllReduce", whole, { op: "REDUCE_OP_AVG" })),
  unequal_sizes: codes(await collective("AllReduce", unequal, {})),
};
const again = await refsOf("AllReduce", brought, { op: "REDUCE_OP_MAX" });
seen.all_reduce_after_errors = await get(ranks[0], again[0]);

const everywhere = [made, sums, brought, spread, whole, again];
const release = (rank, index) => {
  const refs = [...everywhere.map((one) => one[index]), gathered[index].ref].filter(Boolean);
  return outcome(rank.refs, "ReleaseRefs", { ref_ids: refs.map((ref) => ref.id) });
};
seen.released = (await onAll(release)).map(value);
const list = (rank) => outcome(rank.refs, "ListRefs", {});
seen.left = (await onAll(list)).map((response) => value(response).refs.length);
const describe = (rank, index) => outcome(rank.refs, "DescribeRef", { ref_id: made[index].id });
seen.errors.released_ref = codes(await onAll(describe));

process.stdout.write(JSON.stringify(seen) + "\n");
ranks.forEach((rank) => Object.values(rank).forEach((client) => client.close()));
