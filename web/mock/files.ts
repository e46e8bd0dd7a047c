import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}
/** Content security policy, as strict as that of the service. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"

/** Serves the built page and the API handler `answer` on a free port of the loopback interface. */
export async function serve(
  dist: string,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ url: string; close: () => void }> {
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/v1/')) answer(request, response)
    else file(dist, request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${port}/`, close }
}

function file(dist: string, request: IncomingMessage, response: ServerResponse): void {
  const path = normalize(new URL(request.url ?? '/', 'http://service').pathname)
  const name = path === '/' ? '/index.html' : path
  try {
    const body = readFileSync(join(dist, name))
    const type = TYPES[extname(name)] ?? 'application/octet-stream'
    response.writeHead(200, { 'content-type': type, 'content-security-policy': POLICY }).end(body)
  } catch {
    response.writeHead(404).end()
  }
}
