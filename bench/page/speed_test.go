package page

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/varve-db/varve"
)

var speed = flag.Int("speed", 0, "measure the page with this number of memories")

// searched resolves to the milliseconds from a key to the list that answers it, followed by its parts, which
// searchParts names. The page waits 25 ms for the next key.
const searched = `new Promise(done => {
  const q = %q, main = document.querySelector('main'), field = document.querySelector('#q'), from = performance.now()
  const seen = new MutationObserver(() => {
    if (main.hasAttribute('aria-busy') || new URLSearchParams(location.hash.split('?')[1]).get('q') !== q) return
    seen.disconnect()
    const placed = performance.now()
    requestAnimationFrame(() => {
      const now = performance.now(), r = performance.getEntriesByType('resource').at(-1)
      performance.clearResourceTimings()
      done([now - from, r.startTime - from, r.responseEnd - r.startTime, placed - r.responseEnd, now - placed])
    })
  })
  seen.observe(main, {attributes: true, childList: true, subtree: true})
  field.focus()
  field.value = q
  field.dispatchEvent(new Event('input', {bubbles: true}))
})`

var searchParts = [...]string{"wait for the next key", "answer of the server", "change of the page",
	"wait for the next frame"}

// TestSpeed measures the first paint, a search as one types, and the time until a change of an agent is on the page.
func TestSpeed(t *testing.T) {
	if *speed == 0 {
		t.Skip("-speed names no number of memories (VARVE_LONG=1 does not either)")
	}
	s := newSite(t)
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 5000)
	for i := range words {
		words[i] = fmt.Sprintf("w%s%d", string(rune('a'+rng.IntN(26))), i)
	}
	word := func() string { return words[min(int(rng.ExpFloat64()*400), len(words)-1)] } // few words are common
	text := func() string {
		list := make([]string, 30)
		for i := range list {
			list[i] = word()
		}
		return strings.Join(list, " ")
	}
	_, err := s.st.PutAll(t.Context(), func(yield func(varve.Memory) bool) {
		for i := range *speed {
			m := varve.Memory{ID: fmt.Sprint("m", i), Content: text(), Metadata: session(fmt.Sprint("s", i%1000))}
			if !yield(m) {
				return
			}
		}
	})
	if err == nil {
		err = s.st.Flush(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	b := s.newTab()
	report := func(what string, list []float64) {
		slices.Sort(list)
		t.Logf("%s: p50 %.0f ms, p99 %.0f ms, %d times", what, list[len(list)/2], list[len(list)*99/100], len(list))
	}

	var paints, lists []float64
	for range 30 {
		b.do(chromedp.Navigate("about:blank"), network.ClearBrowserCache())
		b.mu.Lock()
		b.bytes = 0
		b.mu.Unlock()
		from := time.Now()
		b.do(chromedp.Navigate("http://" + s.addr + "/#token=" + secret))
		b.settled("list")
		lists = append(lists, float64(time.Since(from).Microseconds())/1000)
		var paint float64
		b.do(chromedp.Evaluate(`performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0`, &paint))
		paints = append(paints, paint)
	}
	report("first paint", paints)
	report("list shown, from the start of the navigation", lists)
	t.Logf("bytes of the page with its list: %d", b.bytes)

	var keys [1 + len(searchParts)][]float64
	for range 40 {
		q := word() + " " + word()
		for end := 2; end <= len(q); end++ {
			if q[end-1] == ' ' {
				continue
			}
			var took []float64
			b.do(chromedp.Evaluate(fmt.Sprintf(searched, q[:end]), &took, awaits))
			for i := range keys {
				keys[i] = append(keys[i], took[i])
			}
		}
	}
	report("search as one types, with the page's wait of 25 ms", keys[0])
	for i, part := range searchParts {
		report("  "+part, keys[i+1])
	}

	b.open("list")
	b.until(`document.querySelector('#live').textContent === 'live'`)
	var live []float64
	for i := range 30 {
		text := fmt.Sprintf("just written %d.", i)
		from := time.Now()
		s.put(varve.Memory{ID: "live", Content: text})
		b.text(text)
		live = append(live, float64(time.Since(from).Microseconds())/1000)
	}
	report("a change is shown, with the page's wait of 250 ms", live)
	b.sound()
}
