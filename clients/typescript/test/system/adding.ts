// Many jobs are added over a connection that loses a reply: each is added once.
import assert from 'node:assert/strict'
import { newQueue, play } from './check.js'

const COUNT = 1200

await play({
  'many jobs': async () => {
    const queue = newQueue<number, null>()
    const added = await queue.addMany(Array.from({ length: COUNT }, (_, n) => ({ payload: n })))
    const jobs = added.map((each) => {
      if (each.status === 'rejected') throw each.reason
      return each.value
    })
    assert.equal(new Set(jobs.map(({ id }) => id)).size, COUNT)
    assert.ok(jobs.every((job) => job.outcome === 'added' && job.state === 'pending'))
    assert.equal((await queue.stats()).pending, COUNT)
    const last = await queue.get(jobs.at(-1)?.id ?? '', { with: ['payload'] })
    assert.equal(last?.payload, COUNT - 1)
    queue.close()
  },
})
