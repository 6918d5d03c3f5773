// The helper for JavaScript, tested by node's own runner: `node --test`.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Gang, open} from './rankbridge.mjs';

test('a gang for a test', async (t) => {
  const gang = await open(t, {size: 3, backend: 'gloo'});
  await gang.ask('create', {name: 'x', dtype: 'float32', shape: [2], fill: 'rank'});

  await t.test('a sum', async () => {
    await gang.ask('call', {call: 'all_reduce', of: 'x', as: 'y'});
    assert.deepEqual((await gang.ask('get', {name: 'y'})).ranks[2].values, [3, 3]);
  });

  await t.test('who asks for something else is named', async () => {
    const call = gang.ask('call', {call: 'all_reduce', of: 'x', but: {1: {op: 'max'}}});
    await assert.rejects(call, (error) => {
      assert.equal(error.code, 'MISMATCH');
      const {ranks} = error.ranks[0];
      assert.deepEqual(ranks.filter((it) => it.state === 'disagrees').map((it) => it.rank), [1]);
      return true;
    });
  });

  await t.test('who is killed is named while others wait, and comes back', async () => {
    const barrier = gang.ask('call', {call: 'barrier', absent: [2], timeout_ms: 60000});
    const [outcome] = await Promise.allSettled([barrier, gang.ask('fault', {kill: [2], at: 'waiting'})]);
    assert.equal(outcome.reason.code, 'PEER_LOST');
    assert.deepEqual((await gang.ask('form')).replaced, [2]);
    await gang.ask('call', {call: 'barrier', expect: {ok: true}});
    // Events come beside the answers, and may come later.
    const replaced = () => gang.events.some((it) => it.event === 'replaced' && it.rank === 2);
    while (!replaced()) await gang.ask('call', {call: 'barrier'});
  });
});

test('a driver that cannot be started is an error', async () => {
  const gang = new Gang('/none/rankbridge');
  await assert.rejects(gang.ask('open', {protocol: 1, size: 2}), {code: 'UNAVAILABLE'});
});
