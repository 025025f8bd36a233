import assert from 'node:assert/strict'
import { test } from 'node:test'
import { additionOf, addSafely } from '../src/adding.js'
import {
  Duplicate, Loading, NoPermission, NotAuthenticated, OutOfMemory, QueueFull, TooLate, Unknown,
  Unreachable, WrongPassword, WrongType,
} from '../src/errors.js'
import { Queue, Worker } from '../src/index.js'
import { Closed, Interrupted } from '../src/link.js'
import type { Reply } from '../src/reply.js'
import type { AddOptions, Words } from '../src/words.js'

const payload = Buffer.from('1')
const lost = new Interrupted('lost')
const duplicate = new Duplicate('DUPLICATE id=mine state=active')

/** Answers each try with the next of these, and keeps what was sent. */
function link(...answers: (Reply | Error)[]): {
  sent: Words[], call(words: Words): Promise<Reply>,
} {
  const sent: Words[] = []
  return {
    sent,
    call: async (words) => {
      sent.push(words)
      const answer = answers.length > 1 ? answers.shift() : answers[0]
      if (answer instanceof Error) throw answer
      return answer ?? null
    },
  }
}

function add(target: ReturnType<typeof link>, options: AddOptions, ms = 5000): Promise<Reply> {
  return addSafely(target, additionOf('q', payload, options), ms)
}

test('what is no word is refused before anything is sent', () => {
  for (const option of [{ group: null }, { tags: { a: true } }, { cost: {} }]) {
    assert.throws(() => additionOf('q', payload, option as unknown as AddOptions), TypeError)
  }
})

test('a name that UTF-8 cannot express is refused before anything is sent, by its argument',
  async () => {
    const lone = 'a\ud83d'
    const options: AddOptions[] = [{ id: lone }, { group: lone }, { keys: ['k', lone] },
      { needs: [lone] }, { after: [lone] }, { tags: { [lone]: 'v' } }, { tags: { t: lone } },
      { pri: lone }]
    for (const option of options) {
      assert.throws(() => additionOf('q', payload, option), {
        name: 'TypeError',
        message: `${Object.keys(option)[0]?.replace(/s$/, '')} has a lone surrogate, which UTF-8 ` +
          'cannot express',
      })
    }
    assert.equal(additionOf('q', payload, { id: '\u{1f600}' }).id, '\u{1f600}')
    const url = 'redis://127.0.0.1:1'
    const makes = [() => new Queue(lone), () => new Worker(['q', lone], () => null, { url })]
    for (const make of makes) assert.throws(make, /^TypeError: queue has a lone surrogate/)
    assert.throws(() => new Worker('q', () => null, { url, match: [lone] }), /TypeError: match has/)
    const queue = new Queue('q', { url })
    const asks = [queue.get(lone), queue.result(lone), queue.cancel(lone), queue.retry(lone)]
    for (const asked of asks) await assert.rejects(asked, /^TypeError: id has a lone surrogate/)
    await assert.rejects(queue.stats({ group: lone }), /^TypeError: group has/)
    await assert.rejects(queue.stats({ by: { tag: lone } }), /^TypeError: tag has/)
    assert.throws(() => queue.events({ ids: [lone] }), /^TypeError: id has/)
    const [outcome] = await queue.addMany([{ payload: 1, id: lone }])
    assert.equal(outcome?.status, 'rejected')
    queue.close()
  })

test('an id is made before the first try and repeated with KEEP', async () => {
  for (const options of [{ group: 'ann' }, { group: 'ann', id: '*' }]) {
    const target = link(lost, lost, 'kept')
    assert.equal(await add(target, options), 'kept')
    const [first, second, third] = target.sent
    assert.match(String(first?.[2]), /^[0-9a-f-]{36}$/)
    assert.deepEqual(first?.slice(4), ['GROUP', 'ann'])
    assert.deepEqual(second, [...first ?? [], 'IFDUP', 'keep'])
    assert.deepEqual(third, second)
  }
})

test('a first try that was made already is not made again', async () => {
  const addition = additionOf('q', payload, {})
  const target = link('kept')
  assert.equal(await addSafely(target, addition, 5000, Promise.resolve('added')), 'added')
  assert.equal(target.sent.length, 0)
  assert.equal(await addSafely(target, addition, 5000, Promise.reject(lost)), 'kept')
  assert.deepEqual(target.sent, [[...addition.first, 'IFDUP', 'keep']])
  const full = Promise.reject(new QueueFull('QFULL pending=1 max=1 retry_after_ms=5'))
  await assert.rejects(addSafely(target, addition, 5000, full), QueueFull)
  assert.equal(target.sent.length, 1)
})

test('the id of the caller is repeated as it is; DUPLICATE is unknown then', async () => {
  const target = link(lost, duplicate)
  await assert.rejects(add(target, { id: 'mine' }), (error) =>
    error instanceof Unknown && error.id === 'mine' && error.cause === duplicate)
  assert.deepEqual(target.sent[1], target.sent[0])
})

test('DUPLICATE at the first try is DUPLICATE', async () => {
  await assert.rejects(add(link(duplicate), { id: 'mine' }), Duplicate)
})

test('update and replace are not repeated', async () => {
  for (const ifdup of ['update', 'replace'] as const) {
    const target = link(lost, 'never')
    await assert.rejects(add(target, { id: 'mine', ifdup }), Unknown)
    assert.equal(target.sent.length, 1)
  }
})

test('what the server refuses is not repeated', async () => {
  const target = link(new QueueFull('QFULL pending=1 max=1 retry_after_ms=5'))
  await assert.rejects(add(target, {}), (error) =>
    error instanceof QueueFull && error.retryAfter === 5)
  assert.equal(target.sent.length, 1)
})

test('a server that is loading is waited for', async () => {
  const loading = new Loading('LOADING the dataset')
  for (const ifdup of ['error', 'replace'] as const) {
    const target = link(loading, loading, 'added')
    assert.equal(await add(target, { id: 'mine', ifdup }), 'added')
    assert.deepEqual(target.sent[2], target.sent[0])
  }
  await assert.rejects(add(link(loading), {}, 120), Loading)
  await assert.rejects(add(link(lost, loading), {}, 120), Unknown)
})

test('after a lost reply a refusal is one; a full memory says nothing', async () => {
  const refusals = [new QueueFull('QFULL pending=1 max=1 retry_after_ms=5'),
    new TooLate('TOOLATE eta_ms=5 maxwait_ms=1')]
  for (const refusal of refusals) {
    const target = link(lost, refusal)
    await assert.rejects(add(target, {}), (error) => error === refusal)
    assert.equal(target.sent.length, 2)
  }
  const full = new OutOfMemory('OOM')
  await assert.rejects(add(link(full), {}), OutOfMemory)
  await assert.rejects(add(link(lost, full), {}, 120), Unknown)
  assert.equal(await add(link(lost, full, 'kept'), {}), 'kept')
})

test('after a lost reply a refusal before the server looks for the job says nothing', async () => {
  for (const refusal of [new NotAuthenticated('NOAUTH'), new WrongPassword('WRONGPASS'),
    new NoPermission('NOPERM'), new WrongType('WRONGTYPE')]) {
    await assert.rejects(add(link(refusal), {}), (error) => error === refusal)
    await assert.rejects(add(link(lost, refusal), {}), (error) =>
      error instanceof Unknown && error.cause === refusal)
  }
})

test('a job that was never sent is not unknown when the time is over', async () => {
  await assert.rejects(add(link(new Unreachable('away')), {}, 1), (error) =>
    error instanceof Unreachable && !(error instanceof Interrupted))
})

test('a job that may have been added is unknown when the time is over', async () => {
  await assert.rejects(add(link(lost), {}, 120), Unknown)
  await assert.rejects(add(link(lost, new Unreachable('away')), {}, 120), Unknown)
})

test('a job whose add was sent is unknown when the connection is closed', async () => {
  const closed = new Closed('closed')
  await assert.rejects(add(link(new Closed('closed', true)), {}), Unknown)
  await assert.rejects(add(link(lost, closed), {}), Unknown)
  await assert.rejects(add(link(closed), {}), Closed)
})

test('times are rounded', () => {
  const { first } = additionOf('q', payload, { id: 'i', delay: 1.5, at: 0.4, backoff: [0.6, 2] })
  assert.equal(first.slice(4).join(' '), 'DELAY 2 AT 0 BACKOFF 1 2')
})

test('options become words of the contract', () => {
  const { first } = additionOf('q', payload, {
    id: 'i', pri: 'high', boost: -5, delay: 1, at: new Date(7), group: 'g', keys: ['k', 'l'],
    cost: 2, ttl: 3, lease: 4, maxRun: 5, retry: 6, backoff: [7, 8], ifdup: 'keep', needs: ['n'],
    after: ['a'], tags: { t: 'v' }, maxWait: 9,
  })
  assert.equal(first.slice(4).join(' '),
    'PRI high BOOST -5 DELAY 1 AT 7 GROUP g KEY k KEY l COST 2 TTL 3 LEASE 4 MAXRUN 5 RETRY 6 ' +
    'BACKOFF 7 8 NEED n AFTER a TAG t v MAXWAIT 9 IFDUP keep')
})
