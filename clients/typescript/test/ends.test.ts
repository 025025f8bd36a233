import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodecError, errorOf, NoPermission, SluiceError } from '../src/errors.js'
import { decodeWith, encodeWith, json, raw } from '../src/codec.js'
import { Interrupted, type Link } from '../src/link.js'
import type { Reply } from '../src/reply.js'
import { sleep } from '../src/time.js'
import { encoded, encodedCommand, type Words } from '../src/words.js'
import type { EndAnswer, PopStyle, Touch } from '../src/worker/commands.js'
import { tellEnds, type Finished } from '../src/worker/ends.js'
import { givenBack, withoutResult, type Ending } from '../src/worker/outcome.js'

const style: PopStyle = {
  queues: ['q'], worker: 'w', match: [], lease: undefined, cap: undefined, with: [],
}
const how = { replyMs: 1000, failed: (): void => undefined }

class FakeLink {
  readonly sent: Words[] = []
  connected = true
  readonly #answer: (words: Words) => Reply | Promise<Reply>

  constructor(answer: (words: Words) => Reply | Promise<Reply>) {
    this.#answer = answer
  }

  async call(words: Words): Promise<Reply> {
    this.sent.push(words)
    return await this.#answer(words)
  }
}

function finished(id: string, ending: Ending, lease = 1, rest: readonly string[] = []): Finished {
  const touches = rest.map((log): Touch =>
    ({ queue: 'q', id, lease, progress: null, log: Buffer.from(log) }))
  return { queue: 'q', id, lease, ending, saying: null, rest: () => touches }
}

async function tell(
  link: FakeLink, ends: readonly Finished[], count: number, told: EndAnswer[] = [],
): ReturnType<typeof tellEnds> {
  const pop = count > 0 ? { token: 't', count } : null
  return await tellEnds(link as unknown as Link, ends, style, pop, how,
    (_each, answer) => told.push(answer))
}

const text = (words: Words): string => words.map(String).join(' ')

test('results are divided among commands, and one of them has the pop', async () => {
  const link = new FakeLink((words) => {
    const answers = words.filter((word) => word === 'RESULT').map(() => 'OK')
    if (words.includes('POP')) return answers.length > 1 ? [answers, null] : null
    return answers.length > 1 ? answers : 'OK'
  })
  const result = 'x'.repeat(300_000)
  const told: EndAnswer[] = []
  const ends = Array.from({ length: 8 }, (_, at) => finished(`${at}`, { kind: 'ack', result }))
  await tell(link, ends, 3, told)
  assert.deepEqual(told, ends.map(() => 'done'))
  assert.equal(link.sent.length, 3)
  for (const words of link.sent) assert.ok(encodedCommand(words).length < 1_100_000)
  assert.deepEqual(link.sent.map((words) => words.includes('POP')), [false, false, true])
})

test('a run that the server refuses does not keep the others from their answers', async () => {
  const told: EndAnswer[] = []
  const link = new FakeLink(() => ['OK', new Error('NOPERM not you'), 'OK'])
  const ends = ['a', 'b', 'c'].map((id) => finished(id, { kind: 'ack', result: null }))
  const { failure, again } = await tell(link, ends, 0, told)
  assert.deepEqual(told, ['done', 'done'])
  assert.ok(failure instanceof Error && failure.cause instanceof NoPermission)
  assert.deepEqual(again.map(({ id, ending }) => [id, ending]), [['b', givenBack]])
})

test('runs that may not be acknowledged are given back, once', async () => {
  const link = new FakeLink(() => { throw errorOf('NOPERM not you') })
  const ends = ['a', 'b'].map((id) => finished(id, withoutResult))
  const { again } = await tell(link, ends, 1)
  assert.deepEqual(again, ends)
  const told = await tell(link, again, 0)
  assert.deepEqual(link.sent.map(text).slice(1), ['Q.NACK q a 1 SILENT AND b 1 SILENT'])
  assert.deepEqual(told.again, [])
})

test('a job that was held twice is named once in a command', async () => {
  const link = new FakeLink((words) => (words.includes('AND') ? ['OK', 'OK'] : 'OK'))
  const ends = [finished('a', withoutResult), finished('a', withoutResult, 2),
    finished('b', withoutResult), finished('c', givenBack), finished('c', givenBack, 2)]
  const told: EndAnswer[] = []
  await tell(link, ends, 0, told)
  assert.deepEqual(link.sent.map(text), ['Q.NACK q c 1 SILENT', 'Q.NACK q c 2 SILENT',
    'Q.ACK q a 1', 'Q.ACK q a 2 AND b 1'])
  assert.deepEqual(told, ends.map(() => 'done'))
})

test('logs go ahead of the ends, each first part before a second', async () => {
  const link = new FakeLink((words) =>
    words[0] === 'Q.TOUCH' ? [0, [null, null]] : words.includes('AND') ? ['OK', 'OK'] : 'OK')
  await tell(link, [finished('a', withoutResult, 1, ['1', '2']),
    finished('b', withoutResult, 1, ['3', '4'])], 0)
  assert.deepEqual(link.sent.map(text), ['Q.TOUCH q a 1 LOG 1 AND b 1 LOG 3 WORKER w',
    'Q.TOUCH q a 1 LOG 2 AND b 1 LOG 4 WORKER w', 'Q.ACK q a 1 AND b 1'])
})

test('an end is not repeated before the log that goes ahead of it is answered', async () => {
  let touched: (reply: Reply) => void = () => undefined
  const touching = new Promise<Reply>((resolve) => (touched = resolve))
  const tries: Record<string, number> = {}
  const link = new FakeLink((words) => {
    const name = words[0]
    tries[name] = (tries[name] ?? 0) + 1
    if (tries[name] === 1) throw new Interrupted('lost')
    return name === 'Q.TOUCH' ? touching : 'OK'
  })
  const telling = tell(link, [finished('a', withoutResult, 1, ['last words'])], 0)
  while (tries['Q.TOUCH'] !== 2) await sleep(5)
  await sleep(100)  // An acknowledgement would be repeated after 20 ms.
  assert.equal(tries['Q.ACK'], 1)
  touched([0, null])
  await telling
  assert.deepEqual(tries, { 'Q.TOUCH': 2, 'Q.ACK': 2 })
})

test('without a connection the log is sent first, and the end once it is answered', async () => {
  const link = new FakeLink(async () => {
    await sleep(10)
    return 'OK'
  })
  link.connected = false
  const telling = tell(link, [finished('a', withoutResult, 1, ['last words'])], 0)
  assert.deepEqual(link.sent.map((words) => words[0]), ['Q.TOUCH'])
  await telling
  assert.deepEqual(link.sent.map((words) => words[0]), ['Q.TOUCH', 'Q.ACK'])
})

test('an end waits for the heartbeat that has its log', async () => {
  const link = new FakeLink(() => 'OK')
  let said: () => void = () => undefined
  const saying = new Promise<void>((resolve) => (said = resolve))
  const telling = tell(link, [{ ...finished('a', withoutResult), saying }], 0)
  await sleep(10)
  assert.equal(link.sent.length, 0)
  said()
  await telling
  assert.equal(link.sent.length, 1)
})

test('without an acknowledgement no pop is sent', async () => {
  const link = new FakeLink(() => 'OK')
  await tell(link, [finished('a', givenBack)], 0)
  assert.equal(link.sent.length, 1)
})

test('long strings are sent as bytes', () => {
  const long = 'ä'.repeat(1_100_000)
  const sent = encodedCommand(['SET', 'k', long, 'PX', 1])
  assert.ok(Buffer.isBuffer(sent))
  assert.equal(sent.toString(),
    `*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$2200000\r\n${long}\r\n$2\r\nPX\r\n$1\r\n1\r\n`)
})

test('what no server takes is refused before it is sent', () => {
  const enormous = Buffer.alloc(512 * 1024 * 1024 + 1)
  assert.throws(() => encoded(enormous), /^RangeError: 536870913 bytes are more/)
  assert.throws(() => encodeWith(raw, enormous), CodecError)
  assert.equal(encoded(enormous.subarray(1)).length, 512 * 1024 * 1024)
})

test('what a codec throws is a CodecError', () => {
  assert.throws(() => decodeWith(json, Buffer.from('{'), 'result'), (error) =>
    error instanceof SluiceError && error instanceof CodecError &&
    error.message.startsWith('result: ') && error.cause instanceof SyntaxError)
})
