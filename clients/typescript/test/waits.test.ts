import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Waits } from '../src/waits.js'

// In place of the connection, which keeps the process.
let keeping: NodeJS.Timeout
before(() => { keeping = setInterval(() => undefined, 60_000) })
after(() => clearInterval(keeping))

function watched(): { waits: Waits, still: number[], change: () => void } {
  let state = 0
  const still: number[] = []
  const waits = new Waits(() => state, (ms) => {
    still.push(ms)
    waits.loseAll(new Error(`still for ${ms} ms`))
  })
  return { waits, still, change: () => void ++state }
}

function lost(waits: Waits, time: number): Promise<{ message: string, ms: number }> {
  const began = performance.now()
  return new Promise((resolve) => waits.add(time, ({ message }) =>
    resolve({ message, ms: performance.now() - began })))
}

test('a wait without a change is lost once its time is over, and with it the others', async () => {
  const { waits, still } = watched()
  const [long, short] = [lost(waits, 60_000), lost(waits, 80)]
  const { message, ms } = await short
  assert.equal(message, 'still for 80 ms')
  assert.ok(ms >= 79, `${ms} ms`)
  assert.equal((await long).message, message)
  assert.deepEqual(still, [80])
  assert.equal(waits.size, 0)
})

test('a change gives a wait its whole time again', async () => {
  const { waits, change } = watched()
  const changing = setInterval(change, 10)
  const losing = lost(waits, 200)
  await sleep(500)
  assert.equal(waits.size, 1)
  clearInterval(changing)
  assert.ok((await losing).ms >= 500 + 200 - 200 / 8 - 11)
})

test('a wait that has ended is not lost, and those behind it have their own time', async () => {
  const { waits, still } = watched()
  for (let count = 0; count < 20; ++count) {
    const wait = waits.add(100, () => assert.fail('it has ended'))
    await sleep(10)
    assert.equal(waits.end(wait), true)
    assert.equal(waits.end(wait), false)
  }
  assert.deepEqual(still, [])
  assert.ok((await lost(waits, 100)).ms >= 99)
})

test('a wait is lost in its time however many others begin meanwhile', async () => {
  const { waits } = watched()
  const losing = lost(waits, 300.1)
  const adding = setInterval(() => waits.add(300.1, () => undefined), 5)
  const { ms } = await losing
  clearInterval(adding)
  assert.ok(ms >= 299, `${ms} ms`)
})
