'use strict'
// The page puts views, which the server makes, into its frame. See doc.go of package page.
{
  const $ = (s, in_ = document) => in_.querySelector(s)
  const $$ = (s, in_ = document) => [...in_.querySelectorAll(s)]
  const main = $('#main'), search = $('#search'), notice = $('#notice'), said = $('#said'), live = $('#live')
  const KEY = 'varve-token'
  // Text of the store is escaped by the server; this is the only place that makes HTML.
  const policy = window.trustedTypes ? trustedTypes.createPolicy('view', {createHTML: s => s}) : {createHTML: s => s}

  // A link to the page has the token in its fragment, which stays in this browser.
  const takeToken = () => {
    const m = /^#token=([\w.~-]+)$/.exec(location.hash)
    if (!m) return
    sessionStorage.setItem(KEY, m[1])
    history.replaceState(null, '', '/#/list')
  }

  let store = '' // the UUID of the store of what is shown: changes are for that store only
  const ask = (path, options = {}) => fetch(path, {
    ...options, cache: 'no-store', credentials: 'omit', redirect: 'error',
    headers: {...options.headers, Authorization: 'Bearer ' + (sessionStorage.getItem(KEY) || '')},
  })

  const say = text => { said.textContent = text }
  const warn = (text, button, act) => {
    notice.replaceChildren(text)
    if (button) {
      const b = document.createElement('button')
      b.textContent = button
      b.addEventListener('click', act)
      notice.append(' ', b)
    }
    notice.hidden = false
  }
  let lost = false // the store or the stream is gone: the warning stays until a stream begins
  const calm = () => { if (!lost) notice.hidden = true }
  const signIn = why => {
    $('#sign-in-why').textContent = why
    if (!$('#sign-in').open) $('#sign-in').showModal()
  }
  const restarted = 'The server does not know this token: it may have been started again.'
  const down = () => 'The server does not answer. ' + (dirty() ? 'What you entered is still here: send it again when the server runs. ' : '') +
    'To start it at this address: memctl ui --addr ' + location.host + ', or memctl serve as before.'

  // ---- views

  let here = '' // the view that is shown, as the fragment names it
  let loading = null
  let answered = false // what is shown is the answer of a POST, which no view shows again
  let sending = 0      // POSTs under way
  const params = () => new URLSearchParams(here.split('?')[1] || '')
  const name = () => here.split('?')[0]

  const put = (html, title) => {
    main.innerHTML = policy.createHTML(html)
    document.title = (title ? title + ' · ' : '') + 'Varve'
    for (const t of $$('time', main)) localTime(t)
  }
  // heading is what a screen reader begins with when a view was loaded.
  const heading = () => {
    const h = $('h1', main)
    h?.setAttribute('tabindex', '-1')
    return h || main
  }

  // load shows the view that the fragment names. quiet leaves the focus and the place where they are.
  const load = async (quiet) => {
    const next = location.hash.startsWith('#/') ? location.hash.slice(2) : 'list'
    const changed = next !== here
    here = next
    loading?.abort()
    clearTimeout(refreshing) // it was about what is not shown any more
    refreshing = 0
    const mine = loading = new AbortController()
    main.setAttribute('aria-busy', 'true')
    mark(changed)
    try {
      const r = await ask('/page/' + here, {signal: mine.signal})
      const html = await r.text()
      if (mine !== loading) return
      if (r.status === 401) return signIn(sessionStorage.getItem(KEY) ?
        restarted : 'This page was opened without one.')
      if (!r.headers.has('Varve-Title')) return warn(html.trim() || 'The server refused: ' + r.status)
      calm()
      $('#read-only').hidden = !r.headers.has('Varve-Read-Only')
      answered = false
      const inside = quiet && main.contains(document.activeElement)
      const at = inside && document.activeElement.closest('[data-id]')?.dataset.id
      store = r.headers.get('Varve-Store') || ''
      put(html, decodeURIComponent(r.headers.get('Varve-Title')))
      if (at) $$('[data-id]', main).find(x => x.dataset.id === at)?.querySelector('a')?.focus({preventScroll: true})
      if (inside && !main.contains(document.activeElement)) heading().focus({preventScroll: true})
      if (changed && !quiet) {
        window.scrollTo(0, 0)
        const place = $('#place', main)
        place?.scrollIntoView({block: 'center'})
        if (!search.contains(document.activeElement)) ($('[data-focus]', main) || place || heading()).focus({preventScroll: true})
      }
      news(0)
      const hits = $('[data-hits]', main)
      $('#heard').textContent = hits ? hits.dataset.hits : ''
    } catch (e) {
      if (e.name !== 'AbortError') warn(down(), 'Try again', () => load())
    } finally {
      if (mine === loading) main.removeAttribute('aria-busy')
    }
  }

  const go = (to, quiet) => {
    if (!leave()) return
    if (location.hash === to) return load(quiet)
    history[quiet ? 'replaceState' : 'pushState'](null, '', to)
    return load(quiet)
  }

  // mark shows in the frame which view is shown, with its filters. They end with the list: a search that begins in
  // another view finds everything.
  const mark = changed => {
    const of = {memory: 'list', edit: 'list', diff: 'list', purge: 'list', note: 'notes', 'note-edit': 'notes',
      assembly: 'assemblies', scope: 'working', checkpoint: 'working', undo: 'log', quarantined: 'quarantine', verify: 'health'}
    const now = of[name()] || name()
    for (const a of $$('nav a')) {
      if (a.getAttribute('href') === '#/' + now) {
        a.setAttribute('aria-current', 'page')
        a.parentElement.scrollLeft = a.offsetLeft - 60
      }
      else a.removeAttribute('aria-current')
    }
    if (name() !== 'list' && !changed) return // a filter may be entered
    const p = name() === 'list' ? params() : new URLSearchParams()
    for (const f of search.elements) {
      if (!f.name || f === document.activeElement) continue
      f.value = f.dataset.exact = p.get(f.name) || ''
      f.dataset.shown = f.value // a field has no line ends
    }
    const set = $$('.filters [name]').filter(f => f.value).length
    $('#filters summary').textContent = set ? `Filters (${set})` : 'Filters'
  }

  // ---- search

  const query = typed => {
    const p = new URLSearchParams()
    for (const f of search.elements) {
      const value = f.value === f.dataset.shown ? f.dataset.exact : f.value.trim()
      if (f.name && value) p.set(f.name, value)
    }
    if (typed && p.has('q')) p.set('typed', '1')
    const s = p.toString()
    return '#/list' + (s && '?' + s)
  }
  let typing = 0
  $('#q').addEventListener('input', () => {
    clearTimeout(typing)
    typing = setTimeout(() => {
      if (leave()) go(query(true), name() === 'list')
      else { $('#q').value = ''; $('#q').blur() }
    }, 25)
  })
  search.addEventListener('change', e => { if (e.target.closest('.filters')) go(query(false), true) })
  search.addEventListener('submit', e => { e.preventDefault(); clearTimeout(typing); go(query(false), name() === 'list'); $('#filters').open = false })
  $('#clear').addEventListener('click', () => { search.reset(); for (const f of search.elements) if (f.name) f.value = ''; go('#/list') })
  $('#filters').addEventListener('toggle', async e => {
    if (!e.target.open || $('#lists').childElementCount) return
    const r = await ask('/page/choices').catch(() => null)
    if (r?.ok) $('#lists').innerHTML = policy.createHTML(await r.text())
  })
  document.addEventListener('click', e => {
    const f = $('#filters')
    if (f.open && !f.contains(e.target)) f.open = false
  })

  // ---- changes: every form is sent as a POST

  main.addEventListener('submit', async e => {
    e.preventDefault()
    const form = e.target, by = e.submitter
    const body = new URLSearchParams(new FormData(form, by))
    const to = by?.getAttribute('data-to') || form.getAttribute('action')
    for (const b of $$('button', form)) b.disabled = true
    sending++
    try {
      const r = await ask(to, {method: 'POST', body, headers: store ? {'Varve-Store': store} : {}})
      const html = await r.text()
      if (r.status === 401) return signIn(restarted + ' What you entered is still here.')
      if (r.headers.has('Varve-Said')) say(decodeURIComponent(r.headers.get('Varve-Said')))
      if (r.headers.has('Varve-Error')) return warn(decodeURIComponent(r.headers.get('Varve-Error'))) // the form stays
      if (r.headers.has('Varve-Go')) {
        calm()
        form.dataset.sent = '1'
        if (form.isConnected) await go(r.headers.get('Varve-Go'))
        return
      }
      if (!r.headers.has('Varve-Title')) return warn(html.trim() || 'The server refused: ' + r.status)
      if (!form.isConnected) return warn('Answer to a form that was left: ' + decodeURIComponent(r.headers.get('Varve-Title')))
      calm()
      answered = true
      store = r.headers.get('Varve-Store') || ''
      put(html, decodeURIComponent(r.headers.get('Varve-Title')))
      window.scrollTo(0, 0)
      ;($('[name=confirm]', main) || heading()).focus({preventScroll: true})
    } catch {
      warn(down())
    } finally {
      sending--
      for (const b of $$('button', form)) b.disabled = false
    }
  })

  // dirty reports whether a form has text that was not sent.
  const dirty = () => $$('main form').some(f => !f.dataset.sent && ('unsaved' in f.dataset ||
    $$('textarea, input[type=text]', f).some(x => x.value !== x.defaultValue)))
  // leave reports whether the view may be left: nothing is unsaved, or the person gives it up.
  const leave = () => {
    if (!dirty()) return true
    if (!confirm('Leave, and lose what you entered?')) return false
    for (const f of $$('main form')) f.dataset.sent = '1'
    return true
  }
  main.addEventListener('input', e => { delete e.target.form?.dataset.sent })
  window.addEventListener('beforeunload', e => { if (dirty()) e.preventDefault() })
  window.addEventListener('hashchange', () => {
    takeToken()
    if (location.hash !== '#/' + here && !leave()) return history.pushState(null, '', '#/' + here)
    load()
  })
  document.addEventListener('click', e => {
    const a = e.target.closest('a[href^="#/"]')
    if (!a || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return
    if (!leave()) e.preventDefault()
    else if (a.getAttribute('href') === location.hash) { e.preventDefault(); load() } // no change of the hash
  }, true)

  // ---- export: a file of what is shown, which the browser saves

  const exportFile = async path => {
    try {
      const r = await ask('/page/export?' + path)
      if (r.status === 401) return signIn(restarted)
      if (!r.headers.has('Varve-File')) return warn(r.headers.has('Varve-Error') ? decodeURIComponent(r.headers.get('Varve-Error')) : await r.text())
      let file = await r.blob(), done = 'Exported'
      if (!r.headers.has('Content-Length')) { // the last line counts
        const tail = new Uint8Array(await file.slice(-0x20000).arrayBuffer())
        const last = tail.lastIndexOf(10, -2) + 1
        const end = JSON.parse(new TextDecoder().decode(tail.subarray(last)))
        file = file.slice(0, file.size - (tail.length - last))
        done = end.exported === 1 ? 'Exported 1 document' : `Exported ${end.exported.toLocaleString('en')} documents`
        if (end.notes) done += `; ${end.notes} of the hits are notes, which are not in the file: export each from its view`
        if (end.more) done += '; there are more hits: memctl search --limit'
        if (end.missing) warn(`${end.missing} documents could not be read and are not in the file: ${end.unread[0]}`)
      }
      const a = document.createElement('a')
      a.href = URL.createObjectURL(file)
      a.download = decodeURIComponent(r.headers.get('Varve-File'))
      a.click()
      setTimeout(() => URL.revokeObjectURL(a.href), 60000)
      say(done)
    } catch {
      warn('The export ended before its end, and nothing was saved.', 'Try again', () => { calm(); exportFile(path) })
    }
  }

  main.addEventListener('click', e => {
    const file = e.target.closest('[data-export]')
    if (file) exportFile(file.dataset.export)
    const out = e.target.closest('[data-out]')
    if (out && confirm('Open ' + out.dataset.out + ' in another tab? It leaves this machine.')) window.open(out.dataset.out, '_blank', 'noopener,noreferrer')
    const all = e.target.closest('#all')
    if (all) for (const c of $$('.rows input[type=checkbox]', main)) c.checked = all.checked
    const n = $$('.rows input[type=checkbox]:checked', main).length
    const bar = $('#marked', main)
    if (bar) { bar.hidden = n === 0; const c = $('#marked-count', main); if (c) c.textContent = n === 1 ? '1 memory marked' : n + ' memories marked' }
  })

  // ---- changes of others, as they happen

  let missed = 0, refreshing = 0
  const news = n => {
    missed = n
    const b = $('#news')
    if (b) b.remove()
    if (!n) return
    const x = document.createElement('button')
    x.id = 'news'
    x.textContent = (n === 1 ? '1 change' : n + ' changes') + ': show'
    x.addEventListener('click', () => load(true))
    live.before(x)
  }
  // kindsOf returns the kinds of documents that a view shows.
  const kindsOf = (view, p) => ({list: p.get('kind') ? [p.get('kind')] : p.get('q') ? ['memory', 'note'] : ['memory'],
    memory: ['memory'], note: ['note'], notes: ['note'], assemblies: ['assembly'], assembly: ['assembly']})[view]
  const heard = c => {
    const p = params(), v = name()
    if (v === 'edit' || v === 'note-edit') {
      if (c.kind === (v === 'edit' ? 'memory' : 'note') && c.id === (p.get('id') || p.get('path'))) warn('Changed by ' + c.by + ' since you began to edit. Saving shows both texts, and overwrites nothing unseen.')
      return
    }
    if (v === 'memory' && (c.kind !== 'memory' || c.id !== p.get('id'))) return
    const kinds = kindsOf(v, p)
    if (kinds ? !kinds.includes(c.kind) : !['log', 'sessions', 'writers'].includes(v)) return
    const busy = () => main.contains(document.activeElement) && ['INPUT', 'TEXTAREA', 'SELECT'].includes(document.activeElement.tagName) ||
      $$('input:checked', main).length || window.scrollY > 200 || dirty() || answered || sending || p.get('place') || p.get('before')
    if (busy()) return news(missed + 1)
    const refresh = () => {
      refreshing = 0
      if (main.hasAttribute('aria-busy')) later()
      else if (busy()) news(missed + 1)
      else load(true)
    }
    const later = () => { refreshing ||= setTimeout(refresh, 250) } // changes without end do not put it off
    later()
  }
  const connected = on => { live.textContent = on ? 'live' : 'not connected'; live.className = on ? 'on' : 'off' }
  let wake = null // ends the wait for the next attempt
  const follow = async () => {
    let wait = 500, again = false, unknown = false
    for (;;) {
      let began = Infinity
      try {
        const r = await ask('/stream')
        if (r.status === 503) { lost = true; warn(await r.text()) }
        if (r.status === 401 && !unknown) { // no dialog: a person may be writing
          unknown = true
          warn(restarted, 'Enter the new one', () => signIn(restarted))
        }
        if (!r.ok) throw new Error(r.status)
        unknown = false
        const read = r.body.pipeThrough(new TextDecoderStream()).getReader()
        let rest = '', first = true
        for (;;) {
          const {value, done} = await read.read()
          if (done) break
          rest += value
          const lines = rest.split('\n')
          rest = lines.pop()
          for (const l of lines) {
            const c = JSON.parse(l)
            if (first) {
              first = false
              began = Date.now()
              connected(true)
              if (lost) { lost = false; calm() }
              if (again && !dirty() && !answered && !sending) load(true)
              again = true
            }
            if (c.ended) { lost = true; warn(c.ended) }
            else if (!c.beat) heard(c)
          }
        }
      } catch { /* asked again below */ }
      connected(false)
      again = true
      if (Date.now() - began > 5000) wait = 500 // it has lasted
      await new Promise(done => { wake = done; setTimeout(done, wait) })
      wait = Math.min(wait * 2, 10000)
    }
  }

  // ---- times

  const units = [[60, 'second'], [60, 'minute'], [24, 'hour'], [60, 'day']]
  const ageOf = ms => {
    let n = Math.abs(ms) / 1000, unit = 'second'
    if (n < 5) return 'just now'
    for (const [most, u] of units) { unit = u; if (n < most) break; if (u !== 'day') n /= most; }
    if (unit === 'day' && n >= 60) { [n, unit] = n < 730 ? [n / 30, 'month'] : [n / 365, 'year'] }
    n = Math.floor(n)
    const s = n + ' ' + unit + (n === 1 ? '' : 's')
    return ms >= 0 ? s + ' ago' : 'in ' + s
  }
  const wholeTime = new Intl.DateTimeFormat([], {dateStyle: 'full', timeStyle: 'long'}) // made once: each takes long
  const localTime = t => {
    const at = new Date(t.dateTime)
    if (isNaN(at)) return
    t.title = wholeTime.format(at)
    if (t.classList.contains('age')) t.textContent = ageOf(Date.now() - at)
  }
  setInterval(() => { for (const t of $$('main time.age')) localTime(t) }, 30000)

  // ---- keys

  const step = by => {
    const rows = $$('.rows [data-id] a.open', main)
    const at = rows.findIndex(a => a.closest('[data-id]') === document.activeElement?.closest?.('[data-id]'))
    const to = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))]
    to?.focus()
  }
  document.addEventListener('keydown', e => {
    const field = e.target.closest?.('input, textarea, select')
    if (e.key === 'Enter' && field?.type === 'checkbox') { // it submits nothing: a button does
      e.preventDefault()
      if (!e.ctrlKey && !e.metaKey) field.closest('[data-id]')?.querySelector('a.open')?.click()
      return
    }
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey) && field?.form && main.contains(field)) { e.preventDefault(); field.form.requestSubmit(); return }
    if (e.key === 'Escape' && !$('dialog[open]')) {
      if ($('#filters').open) $('#filters').open = false
      else if (field && field.type !== 'checkbox') field.blur()
      else if (name() !== 'list') history.back()
      return
    }
    if (e.target === $('#q') && e.key === 'ArrowDown') { e.preventDefault(); return step(1) }
    if (e.key === 'Enter' && e.target.matches?.('[data-out]')) { e.target.click(); return }
    if (field && field.type !== 'checkbox' || e.ctrlKey || e.metaKey || e.altKey || $('dialog[open]')) return
    switch (e.key) {
      case '/': e.preventDefault(); $('#q').focus(); $('#q').select(); break
      case 'j': case 'ArrowDown': if (e.key === 'j' || document.activeElement?.closest?.('.rows')) { e.preventDefault(); step(1) } break
      case 'k': case 'ArrowUp': if (e.key === 'k' || document.activeElement?.closest?.('.rows')) { e.preventDefault(); step(-1) } break
      case 'x': document.activeElement?.closest?.('[data-id]')?.querySelector('input[type=checkbox]')?.click(); break
      case 'e': case 'n': $(`main [data-key="${e.key}"]`)?.click(); break
      case '?': $('#help').showModal(); break
    }
  })
  main.addEventListener('keypress', e => { // Chromium sends the form by this event, not by keydown
    if (e.key === 'Enter' && e.target.type === 'checkbox') e.preventDefault()
  })
  $('#keys').addEventListener('click', () => $('#help').showModal())
  $('#skip').addEventListener('click', e => { e.preventDefault(); main.focus() })
  $('#token-form').addEventListener('submit', e => {
    e.preventDefault()
    const given = $('#token').value.trim()
    sessionStorage.setItem(KEY, (/#token=([\w.~-]+)$/.exec(given) || [])[1] || given)
    $('#token').value = ''
    $('#sign-in').close()
    wake?.()
    if (dirty()) calm()
    else load()
  })

  takeToken()
  load()
  follow()
}
