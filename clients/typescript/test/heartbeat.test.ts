import assert from 'node:assert/strict'
import { test } from 'node:test'
import { raw } from '../src/codec.js'
import { errorOf } from '../src/errors.js'
import type { Link } from '../src/link.js'
import type { Reply } from '../src/reply.js'
import { sleep } from '../src/time.js'
import type { Words } from '../src/words.js'
import type { TouchAnswer } from '../src/worker/commands.js'
import { Heartbeat } from '../src/worker/heartbeat.js'
import { Run } from '../src/worker/run.js'

const MOST_LOG = 1024 * 1024

function newRun(id: string, lease = 1, leaseMs = 30_000): Run<unknown> {
  return new Run({ queue: 'q', id, lease, leaseMs, attempt: 1, payload: Buffer.from('x'),
    extra: new Map() }, raw)
}

interface Beat {
  readonly words: string
  readonly replyMs: number
}

/** One heartbeat of these runs: what was sent, and what was answered for which lease. */
async function beat(
  runs: readonly Run<unknown>[], answer: (words: Words) => Reply | Promise<Reply>,
): Promise<{ sent: Beat[], answered: string[] }> {
  const sent: Beat[] = []
  const answered: string[] = []
  let left: readonly Run<unknown>[] = runs
  const call = async (words: Words, _connectMs: number, replyMs: number): Promise<Reply> => {
    sent.push({ words: words.slice(1).map(String).join(' '), replyMs })
    left = []  // so that this is the only one
    return await answer(words)
  }
  const heartbeat = new Heartbeat({
    commands: { call } as unknown as Link,
    worker: 'w',
    runs: () => left,
    answered: (run: Run<unknown>, { say }: TouchAnswer) =>
      answered.push(`${run.id} ${run.lease} ${say}`),
    quiet: () => undefined,
    failed: (error) => { throw error },
  }, 1)
  heartbeat.expect(Infinity)
  while (answered.length < runs.length) await sleep(1)
  await sleep(1)
  heartbeat.stop()
  return { sent, answered }
}

test('leases whose progress or log is refused are extended without it', async () => {
  const runs = ['a', 'b', 'c'].map((id) => newRun(id))
  runs[0]?.setProgress('p')
  runs[0]?.appendLog('l')
  runs[1]?.appendLog('m')
  const tooBig = new Error('TOOBIG limit=5')
  const { sent, answered } = await beat(runs, (words) =>
    (words.includes('LOG') ? [0, [tooBig, tooBig, null]] : [0, [null, null]]))
  assert.deepEqual(sent.map(({ words }) => words), [
    'q a 1 PROGRESS p LOG l AND b 1 LOG m AND c 1 WORKER w', 'q a 1 AND b 1 WORKER w'])
  assert.deepEqual(answered,
    ['a 1 refused', 'b 1 refused', 'c 1 continue', 'a 1 continue', 'b 1 continue'])
  assert.deepEqual(runs.map((run) => String(run.touch().log)), ['l', 'null', 'null'])
})

test('the same for a single lease', async () => {
  const run = newRun('a')
  run.setProgress('p')
  const { sent } = await beat([run], (words) => {
    if (words.includes('PROGRESS')) throw errorOf('TOOBIG limit=5')
    return ['left_ms', 5, 'cancel', null, 'quiet', 0]
  })
  assert.deepEqual(sent.map(({ words }) => words), ['q a 1 PROGRESS p WORKER w', 'q a 1 WORKER w'])
})

test('a job that is held twice is named once in a command', async () => {
  const { sent, answered } = await beat([newRun('a'), newRun('a', 2), newRun('b')], (words) => {
    if (words.includes('AND')) return [0, [null, null]]
    throw errorOf('STALELEASE id=a state=active')
  })
  assert.deepEqual(sent.map(({ words }) => words), ['q a 1 WORKER w', 'q a 2 AND b 1 WORKER w'])
  assert.deepEqual(answered.sort(), ['a 1 lost', 'a 2 continue', 'b 1 continue'])
})

test('the wait for a reply leaves time for another try', async () => {
  const replyMs = async (...leases: number[]): Promise<number | undefined> => {
    const runs = leases.map((leaseMs, at) => newRun(`${at}`, 1, leaseMs))
    const { sent } = await beat(runs, () => [0, runs.map(() => null)])
    return sent[0]?.replyMs
  }
  assert.equal(await replyMs(60_000, 3000), 1000)
  assert.equal(await replyMs(60_000, 40_000), 5000)
  assert.equal(await replyMs(300, 3000), 250)
})

test('while a heartbeat has a part of the log its run says so', async () => {
  const [run, other] = [newRun('a'), newRun('b')]
  run.appendLog('l')
  await beat([run, other], () => {
    setImmediate(() => run.appendLog('m'))
    return sleep(20).then(() => {
      assert.ok(run.saying !== null)
      assert.equal(other.saying, null)
      return [0, [null, null]]
    })
  })
  assert.equal(run.saying, null)
  assert.deepEqual(run.rest().map(({ log }) => String(log)), ['m'])
})

test('a log arrives in parts, each once, and loses its oldest bytes', () => {
  const run = newRun('a')
  const said: string[] = []
  for (let n = 0; n < 3000; ++n) {
    run.appendLog(`line ${n} ü\n`)
    if (n % 100 !== 0) continue
    const touch = run.touch()
    run.appendLog(`between ${n}\n`)
    if (n % 200 !== 0) continue  // Its reply is lost.
    said.push(String(touch.log ?? ''))
    run.sent(touch)
  }
  said.push(...run.rest().map(({ log }) => String(log ?? '')))
  const lines = said.join('').split('\n')
  assert.equal(lines.filter((line) => line.startsWith('line')).length, 3000)
  assert.equal(lines.length, 3031)
  assert.deepEqual(run.rest(), [])

  run.appendLog('old')
  const touch = run.touch()
  run.appendLog('x'.repeat(MOST_LOG) + 'y')
  run.sent(touch)
  const rest = Buffer.concat(run.rest().map(({ log }) => log ?? Buffer.alloc(0)))
  assert.equal(rest.length, MOST_LOG)
  assert.equal(rest.at(-1), 'y'.charCodeAt(0))
})

test('many short lines cost no more than long ones', () => {
  const run = newRun('a')
  for (let n = 0; n < 300_000; ++n) run.appendLog('0123456789')
  assert.equal(run.rest().reduce((sum, { log }) => sum + (log?.length ?? 0), 0), MOST_LOG)
})
