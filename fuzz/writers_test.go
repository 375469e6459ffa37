package fuzz

import (
	"errors"
	"testing"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs/sim"
)

// writers counts the versions whose writer was known, and those whose writer was not.
type writers struct{ known, unknown int }

// TestSimWriters: each version in log and archive has the process that wrote it as its writer, whatever
// was killed, cut, released and recovered meanwhile; and no number names two writers.
func TestSimWriters(t *testing.T) {
	all := &writers{}
	simulate(t, 3, 60, func(w *world) { w.writers = all })
	if all.known == 0 {
		t.Error("no version has a writer")
	}
	t.Logf("%d versions with their writers, %d without", all.known, all.unknown)
}

// look compares the writers of all versions with the processes that wrote them.
func (ws *writers) look(w *world, p *sim.Proc) {
	st, err := w.open(w.options(p))
	if err != nil {
		w.h.bad("looking at the writers: %v", err)
		return
	}
	defer st.Close()
	numbers := map[uint32]string{}
	list, err := st.Admin().Writers(ctx)
	if err != nil {
		w.h.bad("the writers: %v", err)
	}
	for _, is := range list {
		if was := numbers[is.Number]; was != "" {
			w.h.bad("the number %d is that of %s and of %s", is.Number, was, is.Agent)
		}
		numbers[is.Number] = is.Agent
	}
	for _, id := range w.h.known() {
		for v, err := range st.History(ctx, id) {
			if err != nil && !errors.Is(err, varve.ErrNotFound) {
				continue // it is checked elsewhere
			}
			if err != nil || v.Deleted {
				continue
			}
			m, err := v.Decode()
			if err != nil {
				continue
			}
			by := w.h.tokens[tokenOf(m.Content)]
			switch {
			case by == nil || by.actor == "":
			case v.Writer.Since == 0:
				ws.unknown++
			case v.Writer.Agent != by.actor:
				w.h.bad("%.20q version %d was written by %s, and history names %s", id, v.LSN, by.actor, v.Writer)
			default:
				ws.known++
			}
		}
	}
}
