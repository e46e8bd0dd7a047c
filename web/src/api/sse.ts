/** An event of a stream, as defined by "server-sent events" in the HTML standard. */
export interface ServerEvent {
  name: string
  data: string
  /** Last event id, to resume after it; null before the first id. */
  id: string | null
}

/** Parses events from the text chunks of a connection; an event may span several chunks. */
export class EventReader {
  /** Reconnection delay that the server requested, in milliseconds; null if it requested none. */
  retry_ms: number | null = null
  private rest = ''
  private name = ''
  private data: string[] = []
  private id: string | null = null
  private first = true

  /** Adds a chunk and returns the events that it completes. */
  push(chunk: string): ServerEvent[] {
    if (this.first && chunk !== '') {
      chunk = chunk.replace(/^\uFEFF/, '')
      this.first = false
    }
    const text = this.rest + chunk
    // A CR at the end may be the first half of a CRLF.
    const complete = text.endsWith('\r') ? text.slice(0, -1) : text
    const lines = complete.split(/\r\n|\n|\r/)
    this.rest = (lines.pop() ?? '') + text.slice(complete.length)
    const events: ServerEvent[] = []
    for (const line of lines) {
      if (line === '') {
        if (this.data.length)
          events.push({ name: this.name || 'message', data: this.data.join('\n'), id: this.id })
        this.name = ''
        this.data = []
      } else this.field(line)
    }
    return events
  }

  private field(line: string): void {
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'event') this.name = value
    else if (name === 'data') this.data.push(value)
    else if (name === 'id' && !value.includes('\0')) this.id = value
    else if (name === 'retry' && /^\d+$/.test(value)) this.retry_ms = Number(value)
  }
}
