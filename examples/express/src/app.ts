// A web service: a run is submitted, waits its turn in a queue, and is streamed to the browser.
import {
  BadField, GroupFull, Queue, QueueFull, ServerError, TooLate, Trimmed, Unknown, Unreachable,
  type EventsOptions,
} from '@sluice/queue'
import express, { type NextFunction, type Request, type Response } from 'express'

export interface Run { below: number }
export interface Found { primes: number }

// Messages that may be the last.
const ENDS = new Set(['completed', 'failed', 'cancelled', 'expired', 'state'])
const MOST = 10_000_000

const queue = new Queue<Run, Found>('primes', { patience: 5000 })
const app = express()
app.use(express.json())
app.use(express.static(new URL('../public', import.meta.url).pathname))

type Handler = (request: Request, response: Response) => Promise<unknown>

// Express 4 does not await a handler: what it throws would end the process.
function caught(handler: Handler) {
  return (request: Request, response: Response, next: NextFunction) => {
    handler(request, response).catch(next)
  }
}

app.post('/runs', caught(async (request, response) => {
  const { below, user } = request.body as { below?: unknown, user?: unknown }
  const goodNumber = Number.isInteger(below) && Number(below) > 1 && Number(below) <= MOST
  // JSON can name one half of a pair of surrogates, which is no character.
  const goodName = typeof user === 'string' && user !== '' && user.length <= 64 &&
    !/\p{Surrogate}/u.test(user)
  if (!goodNumber || !goodName) {
    const detail = `below is 2 to ${MOST}, user is a name of at most 64 characters`
    return response.status(422).json({ detail })
  }
  // Refused at once if it would wait for more than a minute.
  const job = await queue.add({ below: Number(below) }, { group: user, maxWait: 60_000 })
  return response.status(202).json({ id: job.id, position: job.position, eta: job.eta })
}))

app.delete('/runs/:id', caught(async (request, response) => {
  const id = request.params['id'] ?? ''
  if (await queue.get(id) === null) return response.status(404).json({ detail: 'no such run' })
  return response.json({ outcome: await queue.cancel(id, { reason: 'by its user' }) })
}))

// What a message begins with, and its type: the state as it is now, which tells an end whose event
// is no longer kept, then each event that the browser has not seen.
async function* heard(options: EventsOptions): AsyncGenerator<[head: string, type: string]> {
  yield ['', 'state']
  for await (const event of queue.events(options)) yield [`id: ${event.seq}\n`, event.type]
}

// Server-sent events. A browser that reconnects says which it has seen, and gets the rest.
app.get('/runs/:id/events', caught(async (request, response) => {
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  const id = request.params['id'] ?? ''
  const from = Number(request.get('Last-Event-ID') ?? 0)
  if (!Number.isSafeInteger(from) || from < 0) {
    return response.status(422).json({ detail: 'Last-Event-ID is the number of an event' })
  }
  if (await queue.get(id) === null) return response.status(404).json({ detail: 'no such run' })
  response.type('text/event-stream')
  try {
    for await (const [head, type] of heard({ from, ids: [id], signal: gone.signal })) {
      const job = await queue.get(id, { with: ['result'] })
      if (job === null) break
      const { state, progress, result, error } = job
      const data = JSON.stringify({ state, progress, result, error })
      response.write(`${head}event: ${type}\ndata: ${data}\n\n`)
      if (job.ended && ENDS.has(type)) break
    }
  } catch (error) {
    if (!(error instanceof Trimmed)) throw error
    response.write('id:\n\n') // The browser forgets its number, and comes again for what is kept.
  }
  return response.end()
}))

// The status and the detail for what a handler throws; null for what it should not.
function answerTo(error: Error): [status: number, detail: string] | null {
  if (error instanceof BadField) return [400, error.message]
  if (error instanceof QueueFull || error instanceof GroupFull || error instanceof TooLate) {
    return [429, `too many runs: ${error.message}`]
  }
  const away = error instanceof Unreachable || error instanceof Unknown ||
    (error instanceof ServerError && error.temporary)
  return away ? [503, `the queue is away: ${error.message}`] : null
}

// Express knows it by its four parameters. Its own, behind `next`, logs and answers 500, or cuts a
// stream off.
app.use((error: Error, _request: Request, response: Response, next: NextFunction) => {
  const answer = answerTo(error)
  if (answer === null || response.headersSent) return next(error)
  return response.status(answer[0]).type('json').json({ detail: answer[1] })
})

const server = app.listen(Number(process.env['PORT'] ?? 8000), 'localhost')
process.once('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
  void queue.close()
})
