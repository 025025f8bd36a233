// A server that answers commands as a test says.
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** What is sent for a command; null: nothing. */
export type Answer = (words: string[], socket: Socket) => string | null

export interface FakeServer {
  readonly url: string
  /** What was asked, but for what a connection begins with. */
  readonly asked: string[][]
  close(): void
}

/** What a connection begins with, CLIENT, is answered by `begin`. */
export async function fakeServer(
  answer: Answer, begin: Answer = () => ':1\r\n',
): Promise<FakeServer> {
  const sockets = new Set<Socket>()
  const asked: string[][] = []
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined))
    let text = ''
    socket.on('data', (data) => {
      text += data.toString('latin1')
      for (let words = take(); words !== null; words = take()) {
        const beginning = words[0]?.toLowerCase() === 'client' && words[1] !== 'UNBLOCK'
        const reply = beginning ? begin(words, socket) : asking(words)
        if (reply !== null) socket.write(reply)
      }
    })
    const asking = (words: string[]): string | null => {
      asked.push(words)
      return answer(words, socket)
    }
    // The next command, if all of it is there.
    const take = (): string[] | null => {
      const lines = text.split('\r\n')
      const count = Number(lines[0]?.slice(1))
      if (lines.length <= 2 * count + 1) return null
      text = lines.slice(2 * count + 1).join('\r\n')
      return lines.slice(1, 2 * count + 1).filter((_line, at) => at % 2 === 1)
    }
  })
  await listening(server)
  const { port } = server.address() as AddressInfo
  return {
    url: `redis://127.0.0.1:${port}`,
    asked,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

function listening(server: Server): Promise<void> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
}

export const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`

/** Accepts connections, and says nothing. */
export async function silentServer(): Promise<{ url: string, sockets: Socket[], close(): void }> {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => undefined).on('end', () => socket.destroy()).resume())
  })
  await listening(server)
  const { port } = server.address() as AddressInfo
  const close = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return { url: `redis://127.0.0.1:${port}`, sockets, close }
}
