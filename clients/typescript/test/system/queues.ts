// Queue: what it adds, tells and follows.
import assert from 'node:assert/strict'
import {
  BadField, CodecError, Duplicate, Job, NoJob, Queue, QueueFull, Trimmed, Unreachable,
  type QueueEvent,
} from '../../src/index.js'
import { newQueue, plain, play, until, url } from './check.js'

const redis = plain()

async function config(queue: Queue, ...fields: (string | number)[]): Promise<void> {
  await redis.call('Q.CONFIG', queue.name, 'SET', ...fields)
}

/** Whether this line of CLIENT LIST is a connection that waits for events. */
function isFollower(line: string): boolean {
  const parts = [' name=sluice-events ', ' cmd=q.events ', ' flags=b ']
  return parts.every((part) => line.includes(part))
}

await play({
  'every option of add arrives': async () => {
    const queue = newQueue<unknown, unknown>()
    await queue.add(0, { id: 'needed' })
    const at = new Date(Date.now() + 600_000)
    const job = await queue.add({ a: [1] }, {
      id: 'mine', pri: 'high', boost: 5, at, group: 'ann', keys: ['k', 'l'], ttl: 60_000,
      lease: 7000, maxRun: 9000, retry: 4, backoff: [10, 20], needs: ['needed'], tags: { a: 'b' },
    })
    assert.deepEqual(
      [job.id, job.outcome, job.state, job.position], ['mine', 'added', 'blocked', null])
    const info = await job.get({ with: ['payload', 'options'] })
    assert.ok(info)
    assert.deepEqual(info.payload, { a: [1] })
    const own = { boost: 5, ttl: 60_000, lease: 7000, maxRun: 9000, retry: 4, backoff: [10, 20] }
    assert.deepEqual(info.options, own)
    const again = await (await queue.add(1, info.options)).get({ with: ['options'] })
    assert.deepEqual(again?.options, own)
    const usual = await queue.get('needed', { with: ['options'] })
    assert.deepEqual(usual?.options, { boost: 0, ttl: 0 })
    assert.deepEqual(
      [info.pri, info.group, info.keys, info.tags, info.leaseTerm, info.maxRun, info.retriesLeft],
      ['HIGH', 'ann', ['k', 'l'], { a: 'b' }, 7000, 9000, 4])
    assert.deepEqual([info.needs, info.ttlLeft, info.successor], [['needed'], 60_000, false])
    assert.equal(await job.why(), 'blocked_by needed')
    const later = await queue.add(1, { at })
    const notBefore = (await later.get())?.notBefore ?? 0
    assert.ok(Math.abs(notBefore - at.getTime()) < 2000, `${notBefore}`)
    assert.equal((await queue.add(2, { delay: 60_000 })).state, 'delayed')
  },

  'ifdup': async () => {
    const queue = newQueue<number, unknown>()
    await queue.add(1, { id: 'a' })
    await assert.rejects(queue.add(2, { id: 'a' }), (error) =>
      error instanceof Duplicate && error.id === 'a' && error.state === 'pending')
    const results = []
    for (const ifdup of ['keep', 'update', 'replace'] as const) {
      results.push((await queue.add(3, { id: 'a', ifdup })).outcome)
    }
    assert.deepEqual(results, ['kept', 'updated', 'replaced'])
  },

  'refusals have their hints': async () => {
    const queue = newQueue<unknown, unknown>()
    await config(queue, 'max_waiting', 1)
    await queue.add(1)
    await assert.rejects(queue.add(2), (error) =>
      error instanceof QueueFull && error.max === 1 && error.temporary)
    await assert.rejects(queue.add(2, { pri: 'none' }), (error) =>
      error instanceof BadField && error.field === 'pri')
    await assert.rejects(queue.add(NaN), CodecError)
    await assert.rejects(queue.retry('unknown'), NoJob)
    assert.equal(await queue.get('unknown'), null)
    assert.equal((await queue.stats())['pending'], 1)
  },

  'cancel and retry': async () => {
    const queue = newQueue<number, unknown>()
    const job = await queue.add(1)
    assert.equal(await job.cancel({ reason: 'why' }), 'cancelled')
    assert.equal(await job.cancel(), 'gone')
    const info = await job.get()
    assert.deepEqual([info?.error, info?.ended], ['why', true])
    assert.equal(await queue.retry(job.id), 'pending')
    assert.equal((await job.get())?.ended, false)
    await redis.call('Q.POP', 1, queue.name)
    assert.equal(await job.cancel({ grace: 0 }), 'cancelled')
  },

  'many jobs, a result or an error for each': async () => {
    const queue = newQueue<number, unknown>()
    const outcomes = await queue.addMany(Array.from({ length: 3000 }, (_, n) =>
      ({ payload: n === 5 ? NaN : n, id: n % 1000 === 7 ? 'same' : `job-${n}` })))
    assert.equal(outcomes.length, 3000)
    const refused = outcomes.flatMap((each, n) =>
      each.status === 'rejected' ? [[n, each.reason.name]] : [])
    assert.deepEqual(refused, [[5, 'CodecError'], [1007, 'Duplicate'], [2007, 'Duplicate']])
    const [first] = outcomes
    assert.ok(first?.status === 'fulfilled' && first.value instanceof Job)
    assert.equal(first.value.id, 'job-0')
    assert.equal((await queue.stats())['pending'], 2997)
    const jobs = ['first', null, 'last'].map((group, payload) =>
      ({ payload, group: group as string }))
    const mixed = await queue.addMany(jobs)
    assert.deepEqual(mixed.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled'])
    assert.equal((await queue.stats())['pending'], 2999)
  },

  'stats of the whole and by line': async () => {
    const queue = newQueue<number, unknown>()
    await queue.add(1, { group: 'ann', tags: { lang: 'c' }, pri: 'low' })
    const all = await queue.stats({ window: 5000 })
    assert.equal(all['added'], 1)
    assert.deepEqual(all['byPriority'],
      { CRITICAL: 0, HIGH: 0, NORMAL: 0, LOW: 1, BACKGROUND: 0 })
    assert.ok(typeof all['rates'] === 'object')
    assert.equal((await queue.stats({ group: 'ann' }))['pending'], 1)
    assert.equal((await queue.stats({ by: 'group' })).get('ann')?.['pending'], 1)
    assert.equal((await queue.stats({ by: { tag: 'lang' } })).get('c')?.['pending'], 1)
    await redis.call('Q.POP', 1, queue.name, 'WORKER', 'w')
    assert.equal((await queue.stats({ by: 'worker' })).get('w')?.['active'], 1)
  },

  'codecs': async () => {
    const bytes = newQueue<Buffer, Buffer>({ codec: 'raw' })
    const job = await bytes.add(Buffer.from([0, 255]))
    assert.deepEqual((await job.get({ with: ['payload'] }))?.payload, Buffer.from([0, 255]))
    const own = newQueue<Date, Date>({
      codec: {
        encode: (value) => (value as Date).toISOString(),
        decode: (text) => new Date(text.toString()),
      },
    })
    const date = new Date(86_400_000)
    assert.deepEqual((await (await own.add(date)).get({ with: ['payload'] }))?.payload, date)
  },

  'events are resumed without a gap': async () => {
    const queue = newQueue<number, unknown>()
    const seen: QueueEvent[] = []
    const ending = new AbortController()
    const following = (async () => {
      for await (const event of queue.events({ from: '-', signal: ending.signal })) seen.push(event)
    })()
    const adding = (async () => {
      for (let n = 0; n < 60; ++n) await queue.add(n, { id: `job-${n}` })
    })()
    // Its connection is ended again and again.
    for (let n = 0; n < 5; ++n) {
      await until('it follows', () => seen.length > 10 * n)
      for (const line of String(await redis.client('LIST')).split('\n')) {
        const id = /^id=(\d+) .*name=sluice-events /.exec(line)?.[1]
        if (id !== undefined) await redis.call('CLIENT', 'KILL', 'ID', id)
      }
    }
    await adding
    await until('all of it', () => seen.length === 60)
    ending.abort()
    await following
    assert.deepEqual(seen.map((event) => event.id), seen.map((_, n) => `job-${n}`))
    assert.deepEqual(seen.map((event) => event.seq), seen.map((_, n) => (seen[0]?.seq ?? 0) + n))
    await redis.call('Q.CANCEL', queue.name, 'job-3')
    for await (const event of queue.events({ from: 0, types: ['cancelled'] })) {
      assert.equal(event.id, 'job-3')
      break
    }
    const chosen: string[] = []
    const aborting = new AbortController()
    let heard = 0
    for await (const _event of queue.events({ from: 0, signal: aborting.signal })) {
      ++heard
      aborting.abort()
    }
    assert.equal(heard, 1)
    for await (const event of queue.events({ from: 0, ids: ['job-7', 'job-9'] })) {
      if (chosen.push(event.id) === 2) break
    }
    assert.deepEqual(chosen, ['job-7', 'job-9'])
    const beyond = queue.events({ from: 1_000_000_000 })
    await assert.rejects(beyond.next(), Trimmed)
  },

  'fields of events': async () => {
    const queue = newQueue<number, unknown>()
    const job = await queue.add(1, { retry: 1 })
    const following = queue.events({ from: '-', ids: [job.id], types: ['progress', 'retrying'] })
    const next = async (): Promise<QueueEvent['fields']> => (await following.next()).value?.fields
      ?? {}
    const first = next()  // Progress is an event while somebody waits for it.
    await until('it follows', async () =>
      String(await redis.client('LIST')).split('\n').some((line) => isFollower(line)))
    const [[, , lease]] =
      await redis.call('Q.POP', 1, queue.name, 'BRIEF') as [[string, string, number]]
    const bytes = Buffer.from([0xff, 0x00])
    await redis.call('Q.TOUCH', queue.name, job.id, lease, 'PROGRESS', bytes)
    assert.deepEqual(await first, { progress: bytes })
    await redis.call('Q.NACK', queue.name, job.id, lease, 'DELAY', 60_000, 'ERROR', 'why')
    assert.deepEqual(await next(), { lease, error: 'why', delay: 60_000 })
    await following.return()
  },

  'events from now on have no gap either': async () => {
    const queue = newQueue<number, unknown>()
    await queue.add(0)
    const events = queue.events({ from: '$' })
    const first = events.next()
    let line: string | undefined
    await until('it follows', async () => {
      line = String(await redis.client('LIST')).split('\n').find(isFollower)
      return line !== undefined
    })
    await redis.call('CLIENT', 'KILL', 'ID', /^id=(\d+)/.exec(line ?? '')?.[1] ?? '')
    await queue.add(1, { id: 'meanwhile' })
    assert.equal((await first).value?.id, 'meanwhile')
    await queue.add(2, { id: 'later' })
    assert.equal((await events.next()).value?.id, 'later')
    await events.return()
  },

  'a queue that is closed ends what waits': async () => {
    const queue = newQueue<number, unknown>()
    const job = await queue.add(1)
    const seen: string[] = []
    const loop = (async () => {
      for await (const event of queue.events({ from: 0 })) seen.push(event.type)
    })()
    const begun = queue.events()  // whose first event is asked for later
    const result = assert.rejects(job.result(), Unreachable)
    await until('an event', () => seen.length > 0)
    queue.close()
    await Promise.all([loop, result])
    assert.deepEqual(await begun.next(), { done: true, value: undefined })
    assert.throws(() => queue.events(), /closed/)
  },

  'queues of one server share a connection': async () => {
    const names = async (): Promise<number> =>
      String(await redis.client('LIST')).split('name=sluice-queue ').length - 1
    assert.equal(await names(), 1)
    const other = new Queue('other', { url })
    await other.add(1)
    other.close()
    await assert.rejects(other.add(1), /closed/)
    assert.equal(await names(), 1)
  },
})
