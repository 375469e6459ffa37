package workingtest

import (
	"fmt"
	"sync"

	"github.com/varve-db/varve/working"
)

var scratchpadCases = []Case{
	{"append, list, last, clear", func(t *T) {
		m := t.Open(nil)
		texts, err := m.Scratchpad(t.Ctx)
		t.OK(err)
		t.Equal("none", texts, []string{})
		want := []string{"first", "", "{\"a\":1}", "two\nlines", "ü 🙂 \x00"}
		var all []working.Note
		for _, text := range want {
			n, err := m.Append(t.Ctx, text)
			t.OK(err)
			t.Equal("text", n.Text, text)
			all = append(all, n)
		}
		texts, err = m.Scratchpad(t.Ctx)
		t.OK(err)
		t.Equal("texts", texts, want)
		for last, from := range map[int]int{-1: 0, 5: 0, 9: 0, 4: 1, 1: 4} {
			notes, err := m.Notes(t.Ctx, last)
			t.OK(err)
			t.Equal(fmt.Sprint("last ", last), notes, all[from:])
		}
		notes, err := m.Notes(t.Ctx, 0)
		t.OK(err)
		t.Equal("last 0", len(notes), 0)
		for i := range all {
			if all[i].Time.IsZero() || i > 0 && all[i].Seq <= all[i-1].Seq {
				t.Errorf("entry %d is %+v", i, all[i])
			}
		}
		for _, want := range []int{5, 0} {
			n, err := m.ClearScratchpad(t.Ctx)
			t.OK(err)
			t.Equal("cleared", n, want)
		}
		n, err := m.Append(t.Ctx, "after")
		t.OK(err)
		t.Equal("grows", n.Seq > all[4].Seq, true)
	}},
	{"F52 the oldest go, also with a capacity of 1", func(t *T) {
		for _, most := range []int{1, 2, 3} {
			m := t.OpenOn(t.Home, working.Scope{Session: fmt.Sprint("capacity ", most)}, &working.Options{MaxNotes: most})
			var want []string
			for i := range 6 {
				_, err := m.Append(t.Ctx, fmt.Sprint(i))
				t.OK(err)
				want = append(want, fmt.Sprint(i))
				want = want[max(0, len(want)-most):]
				texts, err := m.Scratchpad(t.Ctx)
				t.OK(err)
				t.Equal("texts", texts, want)
			}
		}
	}},
	{"a smaller capacity cuts what is there", func(t *T) {
		m := t.Open(nil)
		for i := range 5 {
			_, err := m.Append(t.Ctx, fmt.Sprint(i))
			t.OK(err)
		}
		_, err := t.Open(&working.Options{MaxNotes: 2}).Append(t.Ctx, "5")
		t.OK(err)
		texts, err := m.Scratchpad(t.Ctx)
		t.OK(err)
		t.Equal("texts", texts, []string{"4", "5"})
	}},
	{"F51 appends at once all arrive, in one order", func(t *T) {
		homes := []working.Home{t.Home}
		if t.Again != nil {
			homes = append(homes, t.Again(t.T))
		}
		var wg sync.WaitGroup
		for h, home := range homes {
			m := t.OpenOn(home, session, nil)
			for g := range 4 {
				wg.Go(func() {
					for i := range 25 {
						if _, err := m.Append(t.Ctx, fmt.Sprintf("%d.%d %02d", h, g, i)); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		last := map[string]string{}
		var seen []string
		for _, home := range homes {
			texts, err := t.OpenOn(home, session, nil).Scratchpad(t.Ctx)
			t.OK(err)
			t.Equal("how many", len(texts), len(homes)*4*25)
			for _, text := range texts {
				who := text[:3]
				if seen == nil && text <= last[who] {
					t.Errorf("%q comes after %q", text, last[who])
				}
				last[who] = text
			}
			if seen != nil {
				t.Equal("order", texts, seen)
			}
			seen = texts
		}
	}},
}
