import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NoJob, StaleLease, TooBig } from '../src/errors.js'
import { encodedCommand } from '../src/words.js'
import {
  ackWords, endAnswer, nackWords, popWords, readEnds, readJobs, readTouch, tagsOfPopped, touchWords,
  type PopStyle,
} from '../src/worker/commands.js'
import { endingOf, Cancelled, Fatal, givenBack, refused, Retry } from '../src/worker/outcome.js'
import { planNext, type View } from '../src/worker/plan.js'

const style: PopStyle = {
  queues: ['q'], worker: 'w', match: ['k'], lease: 500, cap: undefined, with: ['tags'],
}
const pop = { token: 't', count: 3 }
const one = { queue: 'q', id: 'a', lease: 1 }
const two = { queue: 'q', id: 'AND', lease: 2 }
const done = { kind: 'ack', result: Buffer.from('5') } as const
const nothing = { kind: 'ack', result: null } as const
const text = (words: readonly unknown[]): string => words.map(String).join(' ')
const jobReply = ['q', 'a', 1, 2, Buffer.from('x'), 30_000, ['tags', ['lang', 'python']]]

test('pops name the worker, the token and what they take', () => {
  assert.equal(text(popWords({ ...style, queues: ['q', 'r'] }, pop, 5000)),
    'Q.POP 2 q r WORKER w REQID t COUNT 3 BRIEF BLOCK 5000 LEASE 500 MATCH k WITH tags')
  assert.equal(text(popWords({ ...style, match: [], lease: undefined, with: [] }, pop, null)),
    'Q.POP 1 q WORKER w REQID t COUNT 3 BRIEF')
  assert.equal(text(popWords({ ...style, match: [], cap: 2, with: [] }, pop, null)),
    'Q.POP 1 q WORKER w REQID t COUNT 3 BRIEF LEASE 500 CAP 2')
})

test('ends of several runs are one command, with the pop at its end', () => {
  const ended = [{ ...one, ending: done }, { ...two, ending: nothing }]
  assert.equal(text(ackWords(ended, style, null)), 'Q.ACK q a 1 RESULT 5 AND AND 2')
  assert.equal(text(ackWords(ended, style, pop)), 'Q.ACK q a 1 RESULT 5 AND AND 2 ' +
    'POP WORKER w REQID t COUNT 3 BRIEF LEASE 500 MATCH k WITH tags')
  assert.equal(text(nackWords([
    { ...one, ending: { kind: 'nack', mode: 'FAIL', delay: 0, error: 'e' } },
    { ...two, ending: givenBack }])), 'Q.NACK q a 1 FAIL DELAY 0 ERROR e AND AND 2 SILENT')
})

test('a heartbeat names all leases, and the worker at the end', () => {
  assert.equal(text(touchWords([
    { ...one, progress: Buffer.from('p'), log: Buffer.from('l') },
    { ...two, progress: null, log: null }], 'w')),
  'Q.TOUCH q a 1 PROGRESS p LOG l AND AND 2 WORKER w')
})

test('jobs are read with and without what WITH adds; null has no jobs', () => {
  assert.deepEqual(readJobs(null, ['q']), [])
  const [job] = readJobs([jobReply], ['q', 'r'])
  assert.equal(job?.queue, 'q')
  assert.equal(job?.attempt, 2)
  assert.equal(job?.leaseMs, 30_000)
  assert.deepEqual(job && tagsOfPopped(job), { lang: 'python' })
  const [brief] = readJobs([jobReply.slice(0, 6)], ['q', 'r'])
  assert.deepEqual(brief && tagsOfPopped(brief), {})
})

test('the reply to one run is that of the command, to several an array', () => {
  assert.deepEqual(readEnds('OK', 1, null), { answers: ['OK'], jobs: [] })
  assert.deepEqual(readEnds(null, 1, ['q']), { answers: ['OK'], jobs: [] })
  assert.equal(readEnds([jobReply], 1, ['q']).jobs[0]?.id, 'a')
  const error = new Error('NOJOB id=b')
  assert.deepEqual(readEnds(['OK', error], 2, null), { answers: ['OK', error], jobs: [] })
  const both = readEnds([['OK', error], [jobReply]], 2, ['q'])
  assert.deepEqual(both.answers, ['OK', error])
  assert.equal(both.jobs[0]?.lease, 1)
  assert.deepEqual(readEnds([['OK', 'OK'], null], 2, ['q']).jobs, [])
})

test('a lost reply makes NOJOB done, and STALELEASE lost', () => {
  const unknown = new NoJob('NOJOB id=a')
  const stale = new StaleLease('STALELEASE id=a state=pending')
  assert.equal(endAnswer('OK', done, false), 'done')
  assert.equal(endAnswer(unknown, done, false), 'lost')
  assert.equal(endAnswer(unknown, done, true), 'done')
  assert.equal(endAnswer(stale, done, false), 'lost')
  assert.equal(endAnswer(stale, done, true), 'lost')
  assert.equal(endAnswer(stale, givenBack, true), 'done')
  assert.equal(endAnswer(new Error('NOJOB id=a'), done, true), 'done')
  const refusal = endAnswer(new Error('TOOBIG limit=5'), done, false)
  assert.ok(typeof refusal === 'object' && refusal.refused instanceof TooBig)
})

test('a heartbeat says who continues, stops, or has lost its lease', () => {
  const errors = [new Error('NOJOB id=c'), new Error('TOOBIG limit=5')]
  const several = readTouch([1, [null, 'why', ...errors]], 4)
  assert.equal(several.quiet, true)
  assert.deepEqual(several.answers.map((answer) => answer.say),
    ['continue', 'stop', 'lost', 'refused'])
  assert.deepEqual(readTouch(['left_ms', 5, 'cancel', null, 'quiet', false], 1),
    { quiet: false, answers: [{ say: 'continue' }] })
  assert.deepEqual(readTouch(['left_ms', 5, 'cancel', 'why', 'quiet', 1], 1),
    { quiet: true, answers: [{ say: 'stop', reason: 'why' }] })
})

test('what a handler throws decides how the run ends', () => {
  assert.deepEqual(endingOf(new TypeError('x'), false),
    { kind: 'nack', mode: 'FAIL', delay: undefined, error: 'TypeError: x' })
  assert.deepEqual(endingOf(new Retry('later', { delay: 5 }), false),
    { kind: 'nack', mode: 'FAIL', delay: 5, error: 'later' })
  assert.deepEqual(endingOf(new Fatal('never'), false),
    { kind: 'nack', mode: 'FATAL', error: 'never' })
  assert.deepEqual(endingOf('text', false),
    { kind: 'nack', mode: 'FAIL', delay: undefined, error: 'text' })
  assert.equal(endingOf(new Cancelled('r'), false), givenBack)
  assert.equal(endingOf(new Error('any, after a cancel'), true), givenBack)
  assert.deepEqual(refused('payload', new SyntaxError('bad')),
    { kind: 'nack', mode: 'FATAL', error: 'payload: bad' })
  const noText = endingOf(Object.create(null), false)
  assert.equal(noText.kind === 'nack' && noText.error, 'what was thrown has no text')
  assert.throws(() => new Retry('never', { delay: -1 }), RangeError)
  assert.throws(() => new Retry('never', { delay: NaN }), RangeError)
  assert.equal(new Retry('later', { delay: 0.4 }).delay, 0)
  const long = endingOf(new Error('x'.repeat(5000)), false)
  assert.equal(long.kind === 'nack' && long.error?.length, 4096)
})

const idle: View = {
  accepting: true, free: 2, left: Infinity, popping: false, settling: false, ended: 0,
  carriesPop: false,
}

test('a free worker pops on the connection that blocks, and never twice', () => {
  assert.deepEqual(planNext(idle), { settle: null, pop: 2 })
  assert.deepEqual(planNext({ ...idle, popping: true }), { settle: null, pop: 0 })
  assert.deepEqual(planNext({ ...idle, free: 0 }), { settle: null, pop: 0 })
  assert.deepEqual(planNext({ ...idle, accepting: false }), { settle: null, pop: 0 })
  assert.deepEqual(planNext({ ...idle, free: 1000 }), { settle: null, pop: 256 })
  assert.deepEqual(planNext({ ...idle, left: 1 }), { settle: null, pop: 1 })
})

test('ends carry the pop if none is outstanding', () => {
  const ended = { ...idle, ended: 3, carriesPop: true }
  assert.deepEqual(planNext(ended), { settle: { count: 2 }, pop: 0 })
  assert.deepEqual(planNext({ ...ended, popping: true }), { settle: { count: 0 }, pop: 0 })
  assert.deepEqual(planNext({ ...ended, accepting: false }), { settle: { count: 0 }, pop: 0 })
  assert.deepEqual(planNext({ ...ended, carriesPop: false }), { settle: { count: 0 }, pop: 2 })
})

test('ends wait for the reply to the last ones', () => {
  assert.deepEqual(planNext({ ...idle, ended: 3, settling: true, carriesPop: true }),
    { settle: null, pop: 2 })
})

test('a command is sent as an array of bulk strings, their lengths in bytes', () => {
  assert.equal(encodedCommand(['Q.GET', 'ä', 12, '']),
    '*4\r\n$5\r\nQ.GET\r\n$2\r\nä\r\n$2\r\n12\r\n$0\r\n\r\n')
  assert.deepEqual(encodedCommand(['A', Buffer.from([0xff, 13]), 'ä', Buffer.alloc(0)]),
    Buffer.concat([Buffer.from('*4\r\n$1\r\nA\r\n$2\r\n'), Buffer.from([0xff, 13]),
      Buffer.from('\r\n$2\r\nä\r\n$0\r\n\r\n')]))
})
