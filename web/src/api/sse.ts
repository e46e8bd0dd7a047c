/** An event of a stream, as the HTML standard's "server-sent events" defines it. */
export interface ServerEvent {
  name: string
  data: string
  /** The number to resume after; null before the first. */
  id: string | null
}

/** Makes events of the pieces of text that a connection brings, wherever these are cut. */
export class EventReader {
  /** How long to wait before the next connection, where the server said so. */
  retry_ms: number | null = null
  private rest = ''
  private name = ''
  private data: string[] = []
  private id: string | null = null
  private first = true

  /** The events that are complete with this piece. */
  take(piece: string): ServerEvent[] {
    if (this.first && piece !== '') {
      piece = piece.replace(/^\uFEFF/, '')
      this.first = false
    }
    const text = this.rest + piece
    // A CR at the end may be half of a CRLF.
    const whole = text.endsWith('\r') ? text.slice(0, -1) : text
    const lines = whole.split(/\r\n|\n|\r/)
    this.rest = (lines.pop() ?? '') + text.slice(whole.length)
    const found: ServerEvent[] = []
    for (const line of lines) {
      if (line === '') {
        if (this.data.length)
          found.push({ name: this.name || 'message', data: this.data.join('\n'), id: this.id })
        this.name = ''
        this.data = []
      } else this.field(line)
    }
    return found
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
