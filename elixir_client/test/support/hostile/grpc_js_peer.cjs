// Calls hostile servers with grpc-js, and prints how each call ended, as JSON in the order of the targets.
//
// Usage: node grpc_js_peer.cjs NODE_MODULES SECONDS TARGET...

const { join } = require("node:path");

const [modules, seconds, ...targets] = process.argv.slice(2);
const grpc = require(join(modules, "@grpc/grpc-js"));
const { version } = require(join(modules, "@grpc/grpc-js/package.json"));

const bytes = (value) => value;

function call(target) {
  const options = { "grpc.use_local_subchannel_pool": 1 };
  const client = new grpc.Client(target, grpc.credentials.createInsecure(), options);
  const deadline = Date.now() + 1000 * Number(seconds);
  return new Promise((resolve) => {
    const ended = (error) => {
      client.close();
      resolve(error ? (grpc.status[error.code] ?? `unnamed ${error.code}`).toLowerCase() : "ok");
    };
    client.makeUnaryRequest("/hostile.Server/Call", bytes, bytes, Buffer.from("hello"), { deadline }, ended);
  });
}

async function main() {
  const codes = new Array(targets.length);
  let next = 0;
  const worker = async () => {
    while (next < targets.length) {
      const mine = next++;
      codes[mine] = await call(targets[mine]);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  console.log(JSON.stringify({ version, codes }));
}

main();
