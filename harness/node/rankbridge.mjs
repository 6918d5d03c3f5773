// A gang for tests in JavaScript. The gang ends with the test, and with this process.
//
//   const gang = await open(t, {size: 4});
//   await gang.ask('create', {name: 'x', dtype: 'float32', shape: [4], fill: 'rank'});
//   await gang.ask('call', {call: 'all_reduce', of: 'x', as: 'y'});
//   (await gang.ask('get', {name: 'y'})).ranks[1].values

import {spawn} from 'node:child_process';
import {createInterface} from 'node:readline';

/** A request that failed: `code`, and of calls the errors by rank, in `ranks`. */
export class HarnessError extends Error {
  constructor(error) {
    super(`${error.code}: ${error.message}`);
    Object.assign(this, {name: 'HarnessError', code: error.code, ranks: error.ranks ?? {}, error});
  }
}

/** A gang, driven by `rankbridge drive`. `events` has what came without an id. */
export class Gang {
  #waiting = new Map();
  #count = 0;
  #ended;
  events = [];

  constructor(command = process.env.RANKBRIDGE_COMMAND ?? 'rankbridge') {
    this.process = spawn(command, ['drive'], {stdio: ['pipe', 'pipe', 'inherit']});
    this.process.stdin.on('error', () => {});
    this.#ended = new Promise((resolve) => {
      this.process.on('error', (error) => resolve(error.message));
      this.process.on('close', (status) => resolve(`it has ended with ${status}`));
    });
    this.#ended.then((reason) => {
      for (const {reject} of this.#waiting.values()) {
        reject(new HarnessError(this.failure ?? {code: 'UNAVAILABLE', message: reason}));
      }
      this.#waiting.clear();
      this.over = reason;
    });
    createInterface({input: this.process.stdout}).on('line', (line) => this.#take(JSON.parse(line)));
  }

  /** Asks for something; gives the answer, or fails with a HarnessError. Calls go on while others are asked for. */
  ask(what, fields = {}) {
    if (this.over) return Promise.reject(new HarnessError({code: 'UNAVAILABLE', message: this.over}));
    const id = ++this.#count;
    this.process.stdin.write(JSON.stringify({...fields, id, do: what}) + '\n');
    return new Promise((resolve, reject) => this.#waiting.set(id, {resolve, reject}));
  }

  /** Ends the gang; gives how the driver ended. */
  close() {
    this.process.stdin.end();
    return this.#ended;
  }

  #take(answer) {
    const waits = this.#waiting.get(answer.id);
    if (waits === undefined) {
      if (answer.error) this.failure = answer.error;
      else this.events.push(answer);
      return;
    }
    this.#waiting.delete(answer.id);
    if (answer.error) waits.reject(new HarnessError(answer.error));
    else waits.resolve(answer.ok);
  }
}

/** Opens a gang that ends with the test `t` of node:test. */
export async function open(t, options) {
  const gang = new Gang();
  t.after(() => gang.close());
  await gang.ask('open', {protocol: 1, ...options});
  return gang;
}
