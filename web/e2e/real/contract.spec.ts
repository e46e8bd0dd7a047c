import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compile, type JSONSchema } from 'json-schema-to-typescript'
import ts from 'typescript'
import { DIST, expect, test } from './fixture.ts'

const TYPES = fileURLToPath(new URL('../../src/api/types.ts', import.meta.url))

type Schema = Record<string, unknown>
interface Operation {
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, { content: Record<string, { schema: Schema }> }>
}
interface Description {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

/** Keys of an interface in types.ts. */
function keys(source: ts.SourceFile, name: string): string[] {
  const found = source.statements.filter(ts.isInterfaceDeclaration).find((one) => one.name.text === name)
  return (found?.members ?? []).map((member) =>
    member.name && (ts.isStringLiteral(member.name) || ts.isIdentifier(member.name)) ? member.name.text : '',
  )
}

/** Redirects references of a schema to `definitions`. With `whole`, marks every property as required, as in responses. */
function local(schema: unknown, whole: boolean): unknown {
  if (Array.isArray(schema)) return schema.map((one) => local(one, whole))
  if (typeof schema !== 'object' || schema === null) return schema
  const copy: Schema = {}
  for (const [key, value] of Object.entries(schema))
    copy[key] =
      key === '$ref' ? String(value).replace('#/components/schemas/', '#/definitions/') : local(value, whole)
  if (whole && typeof copy['properties'] === 'object')
    copy['required'] = Object.keys(copy['properties'] as object)
  return copy
}

/** Compiles the page's types, the service's types and assignments between them; returns the compiler errors. */
function compilerErrors(serviceTypes: string, lines: string): string[] {
  const texts: Record<string, string> = {
    'types.ts': readFileSync(TYPES, 'utf8'),
    'service.ts': serviceTypes,
    'assignments.ts': `import type * as Page from './types'\nimport type * as Service from './service'\n${lines}`,
  }
  const options: ts.CompilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    types: [],
    target: ts.ScriptTarget.ES2022,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    module: ts.ModuleKind.ESNext,
  }
  const host = ts.createCompilerHost(options)
  const read = host.readFile.bind(host)
  const own = (path: string) => texts[path.replace(/^\.?\//, '')]
  host.getCurrentDirectory = () => '/'
  host.fileExists = (path) => own(path) !== undefined || ts.sys.fileExists(path)
  host.readFile = (path) => own(path) ?? read(path)
  host.getSourceFile = (path, target) => {
    const text = host.readFile(path)
    return text === undefined ? undefined : ts.createSourceFile(path, text, target)
  }
  const program = ts.createProgram(['/assignments.ts'], options, host)
  return ts.getPreEmitDiagnostics(program).map((one) => {
    const line =
      one.file && one.start !== undefined ? one.file.getLineAndCharacterOfPosition(one.start).line : 0
    const about = one.file?.text.split('\n')[line]?.trim() ?? ''
    return `${about}\n  ${ts.flattenDiagnosticMessageText(one.messageText, '\n  ')}`
  })
}

/** Differences between the page's types and an OpenAPI document; empty if they agree. */
async function differences(description: Description): Promise<string[]> {
  const source = ts.createSourceFile('types.ts', readFileSync(TYPES, 'utf8'), ts.ScriptTarget.ES2022)
  const schemas: Record<'Responses' | 'RequestBodies' | 'Events', Schema> = {
    Responses: {},
    RequestBodies: {},
    Events: {},
  }
  const [lines, missing]: [string[], string[]] = [[], []]
  for (const key of keys(source, 'Responses')) {
    const [method = '', path = ''] = key.split(' ')
    const operation = description.paths[path]?.[method.toLowerCase()]
    const answer = operation?.responses['200'] ?? operation?.responses['201']
    if (!operation || !answer) missing.push(`${key}: the service does not have it`)
    else schemas.Responses[key] = answer.content['application/json']?.schema
    const body = operation?.requestBody?.content['application/json']?.schema
    if (body) schemas.RequestBodies[key] = body
  }
  const events = description.paths['/v1/events']?.['get']?.responses['200']?.content['text/event-stream']
  const name = String(events?.schema['$ref']).split('/').at(-1) ?? ''
  schemas.Events = description.components.schemas[name]?.['properties'] as Schema
  let text = ''
  for (const [kind, properties] of Object.entries(schemas)) {
    const whole = kind !== 'RequestBodies'
    const root = { type: 'object', properties, definitions: description.components.schemas, required: [] }
    const schema = local(root, whole) as JSONSchema
    schema.required = Object.keys(properties)
    const options = { additionalProperties: false, bannerComment: '', format: false }
    text += `export namespace ${kind} {\n${await compile(schema, 'All', options)}\n}\n`
    for (const key of keys(source, kind)) {
      const page = `Page.${kind}['${key}']`
      const service = `Service.${kind}.All['${key}']`
      // The service sends responses and events; the page sends request bodies.
      const [to, from] = whole ? [page, service] : [service, page]
      if (!missing.some((one) => one.startsWith(key)))
        lines.push(`export const _${lines.length}: ${to} = null! as ${from}`)
    }
  }
  return [...missing, ...compilerErrors(text, lines.join('\n'))]
}

test('the OpenAPI document has every field that the page reads or sends, with its type', async ({
  start,
}) => {
  const service = await start('racks')
  const description = await service.request<Description>('GET', '/v1/openapi.json')
  expect(await differences(description)).toEqual([])
  // Variants with a changed type, a new null, a removed field and a removed operation; the comparison finds each of
  // them.
  const variant = structuredClone(description)
  const of = (name: string) => variant.components.schemas[name]?.['properties'] as Record<string, Schema>
  of('Status')['hot_above'] = { type: 'string' }
  of('Host')['tasks'] = { type: ['integer', 'null'] }
  delete of('Reason')['because']
  delete variant.paths['/v1/hotspots']
  const report = (await differences(variant)).join('\n')
  for (const part of ['hot_above', "'tasks'", 'because', 'GET /v1/hotspots: the service does not have it'])
    expect(report).toContain(part)
})

test('the service serves the built page, with a policy that forbids other origins', async ({ start }) => {
  const service = await start('racks')
  const files = readdirSync(DIST, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  expect(files.length).toBeGreaterThan(3)
  for (const file of files) {
    const path = join(file.parentPath, file.name)
    const response = await service.text(path.slice(DIST.length).replace(/^\/index\.html$/, '/'))
    const same = Buffer.from(await response.arrayBuffer()).equals(readFileSync(path))
    expect(same, `${path}: the service embeds another version; run \`make build\``).toBe(true)
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self';/)
  }
})
