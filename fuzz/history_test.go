package fuzz

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// history has the operations of all callers, with their results and what callers saw. Times are ticks:
// each call and each answer has its own, so for two calls it is known whether one had ended before the
// other began.
type history struct {
	dir     string // where the store is: a migration moves it
	tick    int
	writes  []*write
	seen    []observation
	tokens  map[string]*write
	batches int
	bulk    map[string]bool // written only for their number: some are checked each time
	wrong   []string        // found while recording
	edits   []*edit         // by hand
	jumps   bool            // the clock is set back: expired memories may become visible again
	harmed  map[string]bool // an edit by hand may have removed the content of these
	plugged bool            // the stores have the view of package letters

	labelled bool // memories have the fields that filters use, and searches are checked
}

const never = math.MaxInt

type outcome int

const (
	pending outcome = iota // no answer: in flight, killed, or an error that leaves it open
	acked
	refused // certainly not written
)

// write is one operation that changes one memory.
type write struct {
	token   string // what the content begins with: no two writes have the same
	id      string
	del     bool
	size    int
	session string
	expires time.Time
	start   int
	end     int // of the answer
	by      int // it has taken effect by then, if ever: power was lost
	outcome outcome
	version uint64
	commit  uint64 // where its commit ended, if it took assemblies along; 0: not noted
	base    uint64 // the version that it replaced according to itself; meaningful if based
	based   bool
	batch   int  // writes of one batch share it; 0: alone
	hand    bool // an edit: it may be adopted at any time, or never
	labels  bool // it has what filters are about
	actor   string
}

// observation is a value that a memory had at some moment between two ticks.
type observation struct {
	id         string
	token      string // "": absent
	version    uint64 // 0: not known
	only       bool   // only the version is known (a refusal named it)
	start, end int
	at         time.Time // of the end, for what expires
	what       string
}

func newHistory() *history { return &history{dir: dir, tokens: map[string]*write{}} }

func (h *history) now() int { h.tick++; return h.tick }

// clone returns a copy, for exploring several futures.
func (h *history) clone() *history {
	c := *h
	c.writes = make([]*write, len(h.writes))
	c.tokens = make(map[string]*write, len(h.writes))
	for i, w := range h.writes {
		cp := *w
		c.writes[i], c.tokens[w.token] = &cp, &cp
	}
	c.seen, c.wrong = slices.Clone(h.seen), slices.Clone(h.wrong)
	return &c
}

// powerLost records that writes which have not happened by now never will.
func (h *history) powerLost() {
	now := h.now()
	for _, w := range h.writes {
		if !w.hand {
			w.by = min(w.by, now)
		}
	}
}

func (h *history) begin(w *write) *write {
	w.start, w.end, w.by, w.labels = h.now(), never, never, h.labelled
	w.token = fmt.Sprintf("w%06d", len(h.writes)+1)
	h.writes = append(h.writes, w)
	h.tokens[w.token] = w
	return w
}

func (h *history) answer(o outcome, ws ...*write) {
	now := h.now()
	for _, w := range ws {
		w.outcome, w.end = o, now
	}
}

func (h *history) bad(format string, args ...any) {
	h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
}

func (h *history) observe(o observation) {
	o.end = h.now()
	h.seen = append(h.seen, o)
}

// event is a fact about one memory that is certain.
type event struct {
	token      string
	version    uint64
	start, end int
	what       string
}

func (w *write) value() string {
	if w.del {
		return ""
	}
	return w.token
}

func (w *write) String() string {
	kind := "put"
	if w.del {
		kind = "delete"
	}
	end := fmt.Sprint(w.end)
	if w.end == never {
		end = "…"
	}
	return fmt.Sprintf("%s %s of %.20q [%d,%s] by %d %s version %d batch %d", kind, w.token, w.id, w.start, end, w.by,
		[]string{"pending", "acknowledged", "refused"}[w.outcome], w.version, w.batch)
}

// verdict returns what in the history is impossible.
func (h *history) verdict() []string {
	v := &judge{h: h, wrong: slices.Clone(h.wrong), sighted: map[string]int{}, batches: map[int]int{},
		versions: map[uint64]string{}}
	v.settle()
	for _, id := range v.ids() {
		v.memory(id)
	}
	return v.wrong
}

type judge struct {
	h        *history
	wrong    []string
	sighted  map[string]int // token → the end of the first sight
	batches  map[int]int    // batch → likewise of any of its writes
	versions map[uint64]string
}

func (j *judge) bad(format string, args ...any) {
	j.wrong = append(j.wrong, fmt.Sprintf(format, args...))
}

// settle derives versions, and which writes were seen.
func (j *judge) settle() {
	learn := func(version uint64, token, what string) {
		if version%8 != 0 || version == 0 || token == "" {
			return // an index built from files gives them versions that no frame has
		}
		if was, ok := j.versions[version]; ok && was != token {
			j.bad("version %d stands for two contents: %s and %s (%s)", version, was, token, what)
		}
		j.versions[version] = token
		w := j.h.tokens[token]
		if w == nil {
			return
		}
		if w.version != 0 && w.version != version {
			j.bad("%v was seen as version %d (%s)", w, version, what)
		}
		w.version = version
	}
	for _, w := range j.h.writes {
		if !w.del {
			learn(w.version, w.token, "answer")
		}
	}
	for _, o := range j.h.seen {
		if !o.only {
			learn(o.version, o.token, o.what)
		}
	}
	for i := range j.h.seen {
		o := &j.h.seen[i]
		if o.only {
			if token, ok := j.versions[o.version]; ok {
				o.token, o.only = token, false
			}
		}
		if o.token == "" || o.only {
			continue
		}
		w := j.h.tokens[o.token]
		if w == nil {
			j.bad("%s: %.20q holds %q, which nobody wrote", o.what, o.id, o.token)
			continue
		}
		if was, ok := j.sighted[o.token]; !ok || o.end < was {
			j.sighted[o.token] = o.end
		}
		if w.batch != 0 {
			if was, ok := j.batches[w.batch]; !ok || o.end < was {
				j.batches[w.batch] = o.end
			}
		}
	}
}

// certain returns the tick by which a write had taken effect; ok is false if it may never have.
func (j *judge) certain(w *write) (by int, ok bool) {
	by = min(w.end, w.by)
	if w.outcome == pending {
		by = w.by
	}
	ok = w.outcome == acked
	if at, sighted := j.sighted[w.token]; sighted {
		by, ok = min(by, at), true
	}
	if at, sighted := j.batches[w.batch]; sighted && w.batch != 0 {
		by, ok = min(by, at), true
	}
	return by, ok
}

func (j *judge) ids() []string {
	var ids []string
	for _, w := range j.h.writes {
		ids = append(ids, w.id)
	}
	for _, o := range j.h.seen {
		ids = append(ids, o.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (j *judge) memory(id string) {
	var writes []*write
	var events []event
	for _, w := range j.h.writes {
		if w.id != id {
			continue
		}
		writes = append(writes, w)
		if by, ok := j.certain(w); ok {
			if w.outcome == refused {
				j.bad("%v was refused, and is there", w)
			}
			events = append(events, event{w.value(), w.version, w.start, by, w.String()})
		}
	}
	var looks []observation
	for _, o := range j.h.seen {
		if o.id == id {
			looks = append(looks, o)
			over := func(w *write) bool { return !w.expires.IsZero() && !o.at.Before(w.expires) }
			if !o.only && !(j.h.jumps && o.token == "" && slices.ContainsFunc(writes, over)) {
				events = append(events, event{o.token, o.version, o.start, o.end, "seen by " + o.what})
			}
		}
	}
	for _, o := range looks {
		if o.only {
			j.named(id, o, writes)
		} else {
			j.look(id, o, writes, events)
		}
	}
	j.order(id, writes)
}

// look checks that a memory can have had this value then.
func (j *judge) look(id string, o observation, writes []*write, events []event) {
	why := "nothing can have made it so"
	try := func(token string, start, by int, version uint64) bool {
		if start >= o.end {
			return false
		}
		for _, e := range events {
			if e.token == token || e.token == o.token || e.end >= o.start {
				continue
			}
			if by < e.start || version != 0 && e.version > version {
				why = fmt.Sprintf("that was over: %s", e.what)
				return false
			}
		}
		return true
	}
	if o.token == "" && try("", -1, -1, 0) {
		return
	}
	for _, w := range writes {
		by, _ := j.certain(w)
		switch {
		case w.outcome == refused:
		case w.hand && w.del:
			if o.token == "" && w.start < o.end && !j.since(w, o, writes) {
				return
			}
			why = fmt.Sprintf("a hand had deleted another version: %s", w)
		case w.value() == o.token:
			if try(o.token, w.start, by, w.version) {
				return
			}
		case o.token == "" && !w.expires.IsZero() && !o.at.Before(w.expires):
			if try(w.token, w.start, by, w.version) {
				return
			}
		}
	}
	held := "nothing"
	if w := j.h.tokens[o.token]; w != nil {
		held = w.String()
	} else if o.token != "" {
		held = o.token
	}
	j.bad("%s [%d,%d]: %.20q holds %s: %s", o.what, o.start, o.end, id, held, why)
}

// since reports whether a value was written after its file had been deleted by hand, and before it was
// looked up: the deletion is of the content of the file then.
func (j *judge) since(removal *write, o observation, writes []*write) bool {
	return slices.ContainsFunc(writes, func(w *write) bool {
		by, ok := j.certain(w)
		return ok && !w.hand && !w.del && w.outcome != refused && w.start > removal.end && by < o.start
	})
}

// named checks a refusal that named a version which was never seen: some write must still be able to
// have that version.
func (j *judge) named(id string, o observation, writes []*write) {
	open := false
	for _, w := range writes {
		open = open || !w.del && w.outcome != refused && w.version == 0 && w.start < o.end && w.by > o.start
	}
	if !open {
		j.bad("%s [%d,%d]: %.20q was said to be version %d, which nobody wrote: the refusal rested on something that is lost",
			o.what, o.start, o.end, id, o.version)
	}
	for _, later := range j.h.seen {
		if later.id == id && later.start > o.end && later.version != 0 && later.version < o.version {
			j.bad("%s: %.20q is version %d, after a refusal named %d", later.what, id, later.version, o.version)
		}
	}
}

// order compares versions with times, and checks that each write replaced the version that it was to
// replace.
func (j *judge) order(id string, writes []*write) {
	for _, a := range writes {
		if a.version == 0 {
			continue
		}
		by, _ := j.certain(a)
		for _, b := range writes {
			if b.version == 0 || a == b {
				continue
			}
			if by < b.start && a.version > b.version {
				j.bad("%v came before %v, their versions say otherwise", a, b)
			}
			if a.based && b.version < a.version && b.version > a.base && b.outcome != refused {
				j.bad("lost update of %.20q: %v replaced version %d, with %v between", id, a, a.base, b)
			}
		}
	}
}
