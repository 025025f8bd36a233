import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CodecError, NoPermission, SluiceError } from '../src/errors.js'
import { decodeWith, encodeWith, json, raw } from '../src/codec.js'
import type { Link } from '../src/link.js'
import type { Reply } from '../src/reply.js'
import { encoded, encodedCommand, type Words } from '../src/words.js'
import type { EndAnswer, PopStyle } from '../src/worker/commands.js'
import { tellEnds, type Finished } from '../src/worker/ends.js'
import { givenBack, type Ending } from '../src/worker/outcome.js'

const style: PopStyle = { queues: ['q'], worker: 'w', match: [], lease: undefined, with: [] }
const how = { replyMs: 1000, failed: (): void => undefined }

class FakeLink {
  readonly sent: Words[] = []
  readonly #answer: (words: Words) => Reply

  constructor(answer: (words: Words) => Reply) {
    this.#answer = answer
  }

  async call(words: Words): Promise<Reply> {
    this.sent.push(words)
    return this.#answer(words)
  }
}

function finished(id: string, ending: Ending, told: EndAnswer[] = []): Finished {
  return { queue: 'q', id, lease: 1, ending, rest: [], told: (answer) => told.push(answer) }
}

async function tell(link: FakeLink, ends: readonly Finished[], count: number):
ReturnType<typeof tellEnds> {
  const pop = count > 0 ? { token: 't', count } : null
  return await tellEnds(link as unknown as Link, ends, style, pop, how)
}

test('results are divided among commands, and one of them has the pop', async () => {
  const link = new FakeLink((words) => {
    const answers = words.filter((word) => word === 'RESULT').map(() => 'OK')
    if (words.includes('POP')) return answers.length > 1 ? [answers, null] : null
    return answers.length > 1 ? answers : 'OK'
  })
  const result = 'x'.repeat(300_000)
  const told: EndAnswer[] = []
  const ends = Array.from({ length: 8 }, (_, at) =>
    finished(`${at}`, { kind: 'ack', result }, told))
  await tell(link, ends, 3)
  assert.deepEqual(told, ends.map(() => 'done'))
  assert.equal(link.sent.length, 3)
  for (const words of link.sent) assert.ok(encodedCommand(words).length < 1_100_000)
  assert.deepEqual(link.sent.map((words) => words.includes('POP')), [false, false, true])
})

test('a run that the server refuses does not keep the others from their answers', async () => {
  const told: EndAnswer[] = []
  const link = new FakeLink(() => ['OK', new Error('NOPERM not you'), 'OK'])
  const ends = ['a', 'b', 'c'].map((id) => finished(id, { kind: 'ack', result: null }, told))
  const { failure } = await tell(link, ends, 0)
  assert.deepEqual(told, ['done', 'done'])
  assert.ok(failure instanceof Error && failure.cause instanceof NoPermission)
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
