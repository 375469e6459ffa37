package page

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/varve-db/varve"
)

// named are the roles that a screen reader announces by their names.
var named = map[string]bool{"button": true, "link": true, "textbox": true, "searchbox": true, "checkbox": true,
	"combobox": true, "radio": true, "region": true, "navigation": true, "dialog": true,
	"heading": true, "image": true}

// heard is what a screen reader reads of an element.
type heard struct {
	Ignored bool    `json:"ignored"`
	Role    heardOf `json:"role"`
	Name    heardOf `json:"name"`
}

type heardOf struct {
	Value any `json:"value"`
}

// accessible returns what a screen reader reads of the page. cdproto does not know all properties of the browser.
func (b *tab) accessible() []heard {
	b.t.Helper()
	var tree struct {
		Nodes []heard `json:"nodes"`
	}
	b.do(accessibility.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		return cdp.Execute(ctx, accessibility.CommandGetFullAXTree, nil, &tree)
	}))
	if len(tree.Nodes) == 0 {
		b.t.Fatal("a screen reader reads nothing")
	}
	return tree.Nodes
}

// What a screen reader reads of each view: every control has a name, headings are in order, and one name leads to one
// place.
func TestScreenReader(t *testing.T) {
	s := newSite(t)
	s.fill()
	b := s.newTab()
	for _, v := range views {
		b.step = v
		b.open(v)
		for _, n := range b.accessible() {
			name, _ := n.Name.Value.(string)
			if role, _ := n.Role.Value.(string); !n.Ignored && named[role] && strings.TrimSpace(name) == "" {
				t.Errorf("%s: a %s has no name", v, role)
			}
		}
		var problems []string
		b.do(chromedp.Evaluate(`(() => {
			const problems = []
			let last = 0
			for (const h of document.querySelectorAll('main h1, main h2, main h3, main h4, main h5, main h6')) {
				const level = +h.tagName[1]
				if (last === 0 && level !== 1) problems.push('the first heading is ' + h.tagName)
				if (last && level === 1) problems.push('a second h1: ' + h.textContent)
				if (level > last + 1) problems.push(h.tagName + ' follows h' + last)
				last = level
			}
			if (!last) problems.push('no heading')
			const places = new Map()
			for (const x of document.querySelectorAll('main a[href], main button')) {
				const name = (x.getAttribute('aria-label') || x.textContent).trim()
				const form = x.closest('form')
				const to = x.getAttribute('href') || (x.dataset.export ?? form.getAttribute('action') +
					[...form.querySelectorAll('input[type=hidden]')].map(i => i.value))
				if (places.has(name) && places.get(name) !== to && !x.closest('svg, .open'))
					problems.push(name + ' leads to ' + places.get(name) + ' and to ' + to)
				places.set(name, to)
			}
			return problems
		})()`, &problems))
		for _, p := range problems {
			t.Errorf("%s: %s", v, p)
		}
	}
	b.sound("status of 404")
}

// What happens is said: the number of hits as one types, what was done, errors, and the view that follows.
func TestSaid(t *testing.T) {
	s := newSite(t)
	s.fill()
	b := s.newTab()
	for _, selector := range []string{"#said[role=status]", "#heard[role=status]", "#live[role=status]",
		"#notice[role=alert]"} {
		b.until(`document.querySelector(` + quote(selector) + `) !== null`)
	}
	b.do(chromedp.SendKeys("#q", "ferry", chromedp.ByQuery))
	b.until(`document.querySelector('#heard').textContent === document.querySelectorAll('.rows li').length + ' hits'`)
	b.do(chromedp.SendKeys("#q", "nothingatall", chromedp.ByQuery))
	b.until(`document.querySelector('#heard').textContent === 'no hits'`)
	b.do(chromedp.KeyEvent(kb.Escape)) // the focus stays in the search as long as one types
	b.open("memory?id=note-03")
	b.until(`document.activeElement.tagName === 'H1' && document.activeElement.textContent === 'note-03'`)
	b.press("Forget")
	b.until(`document.querySelector('#said').textContent.startsWith('Forgotten')`)
	b.sound()
}

// Each control of each view is reached by Tab.
func TestKeyboard(t *testing.T) {
	s := newSite(t)
	s.fill()
	b := s.newTab()
	for _, v := range views {
		b.step = v
		b.open(v)
		var n int
		b.do(chromedp.Evaluate(`(() => {
			window.wanted = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, ' +
				'summary, [tabindex="0"]')].filter(x => !x.disabled && x.checkVisibility({visibilityProperty: true}))
			window.reached = new Set()
			document.activeElement.blur()
			document.addEventListener('focusin', e => window.reached.add(e.target))
			return wanted.length
		})()`, &n))
		for range n + 3 {
			b.do(chromedp.KeyEvent(kb.Tab))
		}
		var missed []string
		b.do(chromedp.Evaluate(`wanted.filter(x => !reached.has(x) && x.isConnected).map(x => x.outerHTML.slice(0, 150))`,
			&missed))
		for _, m := range missed {
			t.Errorf("%s: Tab does not reach %s", v, m)
		}
	}
	b.sound("status of 404")
}

// A person without a mouse does the same as one with: each task of a list by keys alone.
func TestKeysOnly(t *testing.T) {
	s := newSite(t)
	for i := range 3 {
		s.put(varve.Memory{ID: fmt.Sprint("m", i), Content: fmt.Sprint("text ", i)})
	}
	b := s.newTab()
	p := &person{tab: b}
	p.key("j")
	p.key("x")
	p.key("j")
	p.key("x")
	b.text("2 memories marked")
	for range 40 { // to the button
		p.key(kb.Tab)
		var at string
		b.do(chromedp.Evaluate(`document.activeElement.textContent`, &at))
		if at == "Forget" {
			break
		}
	}
	p.key(kb.Enter)
	b.text("Forgot 2 memories")
	p.key("?")
	b.do(chromedp.WaitVisible("#help[open]"))
	p.key(kb.Escape)
	b.until(`!document.querySelector('#help').open`)
	b.sound()
}
