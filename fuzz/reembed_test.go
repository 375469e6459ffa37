package fuzz

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs/sim"
)

// The models of the simulator, in the order in which stores change to them: one of
// the same dimension, then others.
var models = []struct {
	name string
	dim  int
}{{"A", 3}, {"B", 3}, {"C", 4}, {"D", 4}, {"E", 3}}

func modelVector(model int, text string) []float32 {
	sum := sha256.Sum256([]byte(models[model].name + text))
	v := make([]float32, models[model].dim)
	for i := range v {
		v[i] = float32(int(sum[2*i])<<8|int(sum[2*i+1])) - 32768
	}
	return v
}

var errEmbedder = errors.New("the embedder does not answer")

// embedder returns an embedder of a model, which fails now and then.
func embedder(model int, rng *rand.Rand, odds int) func(context.Context, []string) ([][]float32, error) {
	return func(_ context.Context, texts []string) ([][]float32, error) {
		if odds > 0 && rng.IntN(odds) == 0 {
			return nil, errEmbedder
		}
		var list [][]float32
		for _, text := range texts {
			list = append(list, modelVector(model, text))
		}
		return list, nil
	}
}

// embedders is a world of memories that are embedded when they are put, and whose model is changed
// meanwhile. Whatever is cut, killed or stopped: each search uses one model alone; never again the
// previous one, once the next was seen; and a memory that has its vector and is not changed is always
// found.
type embedders struct {
	s       *sim.Sim
	rng     *rand.Rand
	acts    int
	n       int  // contents so far
	model   int  // by which all is embedded since the last look that ended a change
	target  int  // by which it is to be
	seen    int  // the newest one by which any search was answered
	any     bool // any model may answer, though only one
	keeps   bool
	copies  int // made so far
	backups []embedBackup
	said    map[string][]string
	solid   map[string]bool // they have a vector, and no process has begun to change them
	wrong   []string
	did     map[string]int
}

func newEmbedders(s *sim.Sim, seed uint64) *embedders {
	return &embedders{s: s, rng: rand.New(rand.NewPCG(seed, 55)), said: map[string][]string{}, solid: map[string]bool{}, did: map[string]int{}}
}

func (g *embedders) bad(format string, args ...any) {
	g.wrong = append(g.wrong, fmt.Sprintf(format, args...))
}

const embedMemories = 9

func (g *embedders) options(p *sim.Proc, model int, rng *rand.Rand, odds int) *varve.Options {
	o := options(p.FS, p.Rand(), p.Now, p.Wait)
	if model >= 0 {
		o.Embed, o.EmbedModel, o.EmbedBatch = embedder(model, rng, odds), models[model].name, 3
	}
	return o
}

// work puts, edits, deletes and searches, with the present model or the next.
func (g *embedders) work(p *sim.Proc) {
	rng := rand.New(rand.NewPCG(g.rng.Uint64(), 3))
	for g.acts > 0 {
		model := []int{g.model, g.model, g.target, -1}[rng.IntN(4)]
		st, err := varve.Open(ctx, dir, g.options(p, model, rng, 7))
		if err != nil {
			g.bad("%s: open: %v", p.Name, err)
			return
		}
		var kept []varve.Memory
		for n := 5 + rng.IntN(40); n > 0 && g.acts > 0; n-- {
			g.acts--
			kept = g.step(p.Name, st, rng, kept, model >= 0)
		}
		if err := st.Close(); err != nil {
			g.bad("%s: close: %v", p.Name, err)
			return
		}
	}
}

// change re-embeds everything with the target model, until it is done.
func (g *embedders) change(p *sim.Proc) {
	rng := rand.New(rand.NewPCG(g.rng.Uint64(), 4))
	for g.acts > 0 {
		st, err := varve.Open(ctx, dir, g.options(p, g.target, rng, 9))
		if err != nil {
			g.bad("%s: open: %v", p.Name, err)
			return
		}
		_, err = st.Vectors().Reembed(ctx, varve.ReembedOptions{Restart: rng.IntN(20) == 0, Progress: func(varve.ReembedReport) {
			if g.keeps && rng.IntN(4) == 0 {
				g.backup(p.Name, st)
			}
		}})
		switch {
		case err == nil:
			g.did["changed"]++
		case errors.Is(err, errEmbedder):
			g.did["interrupted"]++
		case errors.Is(err, varve.ErrLocked), errors.Is(err, varve.ErrConflict):
			g.did["refused change"]++
		default:
			g.bad("%s: Reembed: %v", p.Name, err)
		}
		g.search(p.Name, st, rng)
		if cerr := st.Close(); cerr != nil {
			g.bad("%s: close: %v", p.Name, cerr)
			return
		}
		if err == nil {
			return
		}
		g.acts -= 3
	}
}

// empty deletes everything: later memories may have another dimension, once the model is changed.
func (g *embedders) empty(st *varve.Store) error {
	clear(g.solid)
	var errs []error
	for i := range 3 {
		errs = append(errs, st.Assemblies().Delete(ctx, fmt.Sprint("g", i)))
	}
	for i := range embedMemories {
		errs = append(errs, st.Delete(ctx, groupMemory(i)))
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, varve.ErrNotFound) {
			return err
		}
	}
	return nil
}

// say records the content that an id may have from now on.
func (g *embedders) say(id string) string {
	g.n++
	text := fmt.Sprintf("t%d:%s", g.n, filling[:20+g.n*37%900])
	g.said[id] = append(g.said[id], text)
	delete(g.solid, id)
	return text
}

// reword gives a memory another content. Without an embedder the vector of the previous content would
// stay.
func (g *embedders) reword(m *varve.Memory, embeds bool) {
	if m.Content = g.say(m.ID); !embeds {
		m.Embedding = nil
	}
}

func (g *embedders) step(who string, st *varve.Store, rng *rand.Rand, kept []varve.Memory, embeds bool) []varve.Memory {
	id := groupMemory(rng.IntN(embedMemories))
	var what string
	var err error
	switch n := rng.IntN(100); {
	case n < 20:
		what = "put"
		_, err = st.Put(ctx, varve.Memory{ID: id, Content: g.say(id)})
	case n < 26:
		what = "batch"
		b := new(varve.Batch)
		for range 3 {
			id := groupMemory(rng.IntN(embedMemories))
			b.Put(varve.Memory{ID: id, Content: g.say(id)})
		}
		err = st.Apply(ctx, b)
	case n < 36:
		what = "update"
		_, err = st.Update(ctx, id, func(m *varve.Memory) error {
			delete(g.solid, id)
			if rng.IntN(2) == 0 {
				g.reword(m, embeds)
			}
			m.AccessCount++
			return nil
		})
	case n < 42:
		what = "keep"
		var m varve.Memory
		if m, err = st.Get(ctx, id); err == nil {
			kept = append(kept, m)
		}
	case n < 50: // a memory that was read a while ago
		if len(kept) == 0 {
			return kept
		}
		what = "put back"
		m := kept[rng.IntN(len(kept))]
		delete(g.solid, m.ID)
		if rng.IntN(3) == 0 {
			g.reword(&m, embeds)
		}
		_, err = st.Put(ctx, m)
	case n < 58:
		what = "delete"
		delete(g.solid, id)
		err = st.Delete(ctx, id)
	case n < 63:
		what = "group"
		_, err = st.Assemblies().Put(ctx, varve.Assembly{ID: fmt.Sprint("g", rng.IntN(3)), MemoryIDs: []string{id, groupMemory(rng.IntN(embedMemories))}})
	case n < 67:
		what = "rename"
		_, err = st.Assemblies().Update(ctx, fmt.Sprint("g", rng.IntN(3)), func(a *varve.Assembly) error { a.Name += "x"; return nil })
	case n < 87:
		g.search(who, st, rng)
		return kept
	case n < 88:
		what = "empty"
		err = g.empty(st)
	case n < 91:
		what = "embed pending"
		_, err = st.Vectors().EmbedPending(ctx)
		var me *varve.ModelError
		if errors.Is(err, errEmbedder) || errors.As(err, &me) {
			err = nil
		}
	case n < 96:
		what = "flush"
		err = st.Flush(ctx)
	default:
		what = "compact"
		err = st.Admin().Compact(ctx)
	}
	g.did[what]++
	var missing *varve.MissingMembersError
	if err != nil && !isRefusal(err) && !errors.As(err, &missing) {
		g.bad("%s: %s %s: %v", who, what, id, err)
	}
	return kept
}

// search searches for everything, with a vector of any model's dimension.
func (g *embedders) search(who string, st *varve.Store, rng *rand.Rand) {
	dim := 3 + rng.IntN(2)
	q := make([]float32, dim)
	for i := range q {
		q[i] = float32(rng.IntN(2001) - 1000)
	}
	q[0]++ // never zero for long
	solid, seen := maps.Clone(g.solid), g.seen
	hits, err := st.Search(ctx, varve.Query{Vector: q, Limit: 1000})
	if errors.Is(err, varve.ErrDimension) {
		g.did["search, other dimension"]++
		if !g.any && models[g.model].dim == dim && models[g.target].dim == dim {
			g.bad("%s: a vector of %d dimensions: %v", who, dim, err)
		}
		return
	}
	if err != nil {
		g.bad("%s: search: %v", who, err)
		return
	}
	for id := range solid {
		if g.solid[id] && !slices.ContainsFunc(hits, func(h varve.Hit) bool { return h.ID == id }) {
			g.bad("%s: a search by %d dimensions does not find %s, only %d others", who, dim, id, len(hits))
		}
	}
	if len(hits) == 0 {
		return
	}
	why := ""
	for i, m := range models {
		if m.dim != dim {
			continue
		}
		wrong := slices.IndexFunc(hits, func(h varve.Hit) bool {
			return !slices.ContainsFunc(g.said[h.ID], func(text string) bool {
				return math.Abs(cosine(q, modelVector(i, text))-h.Score) < 1e-5
			})
		})
		if wrong < 0 {
			g.did["search by "+m.name]++
			if g.any {
				return
			}
			if i < seen {
				g.bad("%s: answered by %s, somebody was by %s before", who, m.name, models[seen].name)
			}
			if i != g.model && i != g.target {
				g.bad("%s: answered by %s, not %s or %s", who, m.name, models[g.model].name, models[g.target].name)
			}
			g.seen = max(g.seen, i)
			return
		}
		why += fmt.Sprintf(" %s is not by %s;", hits[wrong].ID, m.name)
	}
	g.bad("%s: %d hits are by no one model:%s", who, len(hits), why)
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// look opens the store alone, first as it was left, then with an embedder that does not fail, and
// completes what was begun if end is set.
func (g *embedders) look(p *sim.Proc, end bool) {
	rng := rand.New(rand.NewPCG(g.rng.Uint64(), 5))
	st, err := varve.Open(ctx, dir, g.options(p, -1, rng, 0))
	if err != nil {
		g.bad("the store does not open: %v", err)
		return
	}
	if r := st.Admin().OpenReport(); r.Damage != nil || r.Rebuilt != nil || len(r.Problems) > 0 {
		g.bad("open: damage %v, rebuilt %v, problems %v", r.Damage, r.Rebuilt, r.Problems)
	}
	g.compare("opened", st)
	for range 4 {
		g.search("look", st, rng)
	}
	if err := st.Flush(ctx); err != nil {
		g.bad("flush: %v", err)
	}
	g.compare("flushed", st)
	if err := st.Close(); err != nil {
		g.bad("close: %v", err)
	}
	by := g.model
	if end {
		by = g.target
	}
	if st, err = varve.Open(ctx, dir, g.options(p, by, rng, 0)); err != nil {
		g.bad("the store does not open again: %v", err)
		return
	}
	if end {
		if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
			g.bad("going on: %v", err)
		}
		g.model = g.target
		g.whole(st)
		g.takes(st)
	} else if _, err := st.Vectors().EmbedPending(ctx); err != nil {
		var me *varve.ModelError
		if !errors.As(err, &me) {
			g.bad("embed pending: %v", err)
		}
	}
	g.compare("gone on", st)
	g.search("look", st, rng)
	g.solidify(st)
	if err := st.Close(); err != nil {
		g.bad("close: %v", err)
	}
}

// solidify determines which memories have a vector now.
func (g *embedders) solidify(st *varve.Store) {
	clear(g.solid)
	for _, dim := range []int{3, 4} {
		hits, err := st.Search(ctx, varve.Query{Vector: []float32{1, 2, 3, 4}[:dim], Limit: 1000})
		if err != nil && !errors.Is(err, varve.ErrDimension) {
			g.bad("search: %v", err)
		}
		for _, h := range hits {
			g.solid[h.ID] = true
		}
	}
}

func (g *embedders) compare(when string, st *varve.Store) {
	if r, err := storetest.CheckVectors(ctx, st); err != nil || r.Drift() != 0 {
		g.bad("%s: vectors: %+v, %v", when, r, err)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			g.bad("%s: verify: %s %v", when, f.String(), err)
		}
	}
}

// whole checks that every memory has the model's vector, in its document and in the index.
func (g *embedders) whole(st *varve.Store) {
	if s := st.Admin().Stats(); s.Switching || s.NextModel != "" || s.Model != models[g.model].name && s.Model != "" {
		g.bad("after all the model is %q, switching %v, next %q", s.Model, s.Switching, s.NextModel)
	}
	vectors := map[string][]float32{}
	for m, err := range st.Memories(ctx) {
		if err != nil {
			g.bad("%v", err)
			continue
		}
		want := modelVector(g.model, m.Content)
		if vectors[m.ID] = m.Embedding; !slices.Equal(m.Embedding, want) {
			g.bad("%s has the embedding %v, that by %s is %v", m.ID, m.Embedding, models[g.model].name, want)
		}
		hits, err := st.Search(ctx, varve.Query{Vector: want, Limit: 1})
		if err != nil || len(hits) != 1 || hits[0].ID != m.ID || hits[0].Score < 0.9999 {
			g.bad("the vector of %s finds %v, %v", m.ID, hits, err)
		}
	}
	for a, err := range st.Assemblies().All(ctx) {
		if err != nil {
			g.bad("%v", err)
			continue
		}
		var list [][]float32
		for _, id := range a.MemoryIDs {
			list = append(list, vectors[id])
		}
		want, _ := assembly.Composite(0, slices.Values(list))
		if !slices.EqualFunc(a.CompositeEmbedding, want, func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-6 }) {
			g.bad("assembly %s of %q has the composite %v, that of its members is %v", a.ID, a.MemoryIDs, a.CompositeEmbedding, want)
		}
	}
}

// takes checks that a put memory gets the model's vector, even if no vector exists from which the
// dimension could be known.
func (g *embedders) takes(st *varve.Store) {
	if g.rng.IntN(2) == 0 {
		if err := errors.Join(g.empty(st), st.Flush(ctx)); err != nil {
			g.bad("emptying: %v", err)
		}
	}
	m, err := st.Put(ctx, varve.Memory{ID: "last", Content: g.say("last")})
	if err != nil || !slices.Equal(m.Embedding, modelVector(g.model, m.Content)) {
		g.bad("put after all: %v, %v", m.Embedding, err)
	}
	if err := st.Delete(ctx, "last"); err != nil {
		g.bad("delete after all: %v", err)
	}
}

// keep backs the store up beside the others, and checks stores that are restored from the backups, as of
// their end or of any moment: they use one model, and an interrupted change of the model continues
// there.
func (g *embedders) keep(p *sim.Proc) {
	rng := rand.New(rand.NewPCG(g.rng.Uint64(), 7))
	for busy := true; busy; {
		p.Sleep(time.Duration(rng.IntN(20000)) * time.Microsecond)
		if busy = g.acts > 0; busy && rng.IntN(4) == 0 {
			st, err := varve.Open(ctx, dir, g.options(p, -1, rng, 0))
			if err != nil {
				g.bad("%s: open: %v", p.Name, err)
				return
			}
			g.backup(p.Name, st)
			if err := st.Close(); err != nil {
				g.bad("%s: close: %v", p.Name, err)
			}
		}
		for len(g.backups) > 0 {
			b := g.backups[0]
			g.backups = g.backups[1:] // if the process is killed meanwhile, the backup stays
			o := &varve.RestoreOptions{Options: g.options(p, -1, rng, 0)}
			if rng.IntN(3) == 0 {
				o.Version = b.first + rng.Uint64N(b.last-b.first+1)
			}
			g.restored(p, rng, b.path, "/restored"+b.path[1:], o)
		}
	}
}

// embedBackup is a backup that was acknowledged.
type embedBackup struct {
	path        string
	first, last uint64
}

// embedCopies is how many backups a seed makes.
const embedCopies = 12

func (g *embedders) backup(who string, st *varve.Store) {
	if g.copies == embedCopies {
		return
	}
	g.copies++
	path := fmt.Sprint("/backup", g.copies)
	info, err := st.Backup(ctx, path, varve.BackupOptions{})
	switch {
	case errors.Is(err, varve.ErrLimit): // more log piled up meanwhile than its budget
	case err != nil:
		g.bad("%s: backup: %v", who, err)
	default:
		g.did["backup"]++
		g.backups = append(g.backups, embedBackup{path, info.First.LSN, info.Last.LSN})
	}
}

func (g *embedders) restored(p *sim.Proc, rng *rand.Rand, backup, to string, o *varve.RestoreOptions) {
	if _, err := varve.Restore(ctx, backup, to, o); err != nil {
		g.bad("%s: restore: %v", p.Name, err)
		return
	}
	target := rng.IntN(len(models))
	st, err := varve.Open(ctx, to, g.options(p, target, rng, 0))
	if err != nil {
		g.bad("%s: opening %s: %v", p.Name, to, err)
		return
	}
	// It is another store: what is known of the first one does not apply to it.
	r := &embedders{s: g.s, rng: rng, model: 0, target: target, any: true, said: g.said, solid: map[string]bool{}, did: g.did}
	if st.Admin().Stats().Switching {
		g.did["restored amid a change"]++
	} else if st.Admin().Stats().NextModel != "" {
		g.did["restored before a change"]++
	}
	r.compare(to, st)
	for range 4 {
		r.search(to, st, rng)
	}
	if rng.IntN(3) == 0 {
		if _, err := st.Vectors().CancelReembed(ctx); err != nil && !errors.Is(err, varve.ErrConflict) {
			g.bad("%s: canceling in %s: %v", p.Name, to, err)
		}
		r.search(to, st, rng)
	}
	if _, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
		g.bad("%s: going on in %s to %s: %v", p.Name, to, models[target].name, err)
	}
	r.model = target
	r.whole(st)
	r.compare(to, st)
	if err := st.Close(); err != nil {
		g.bad("%s: closing %s: %v", p.Name, to, err)
	}
	for _, w := range r.wrong {
		g.bad("%s of %s: %s", to, backup, w)
	}
}

func (g *embedders) run(writers, boots int) error {
	// A store whose memories have vectors: a change is about existing vectors.
	g.s.Process("first", func(p *sim.Proc) {
		rng := rand.New(rand.NewPCG(g.rng.Uint64(), 6))
		st, err := varve.Open(ctx, dir, g.options(p, 0, rng, 0))
		if err != nil {
			g.bad("open: %v", err)
			return
		}
		for i := range embedMemories {
			if _, err := st.Put(ctx, varve.Memory{ID: groupMemory(i), Content: g.say(groupMemory(i))}); err != nil {
				g.bad("put: %v", err)
			}
		}
		g.solidify(st)
		if err := st.Close(); err != nil {
			g.bad("close: %v", err)
		}
	})
	if err := g.s.Run(); err != nil {
		return err
	}
	g.s.OnKill = func(p *sim.Proc) {
		g.did["killed"]++
		switch p.Name {
		case "change":
			g.s.Process("change", g.change)
		case "keep":
			g.s.Process("keep", g.keep)
		default:
			g.s.Process("again", g.work)
		}
	}
	for boot := range boots {
		g.acts = 20 + g.rng.IntN(120)
		if g.rng.IntN(3) == 0 {
			g.s.Process("empty", func(p *sim.Proc) {
				st, err := varve.Open(ctx, dir, g.options(p, -1, g.rng, 0))
				if err == nil {
					err = errors.Join(g.empty(st), st.Close())
				}
				if err != nil {
					g.bad("emptying: %v", err)
				}
			})
			if err := g.s.Run(); err != nil {
				return err
			}
			g.did["emptied before"]++
		}
		if g.model == g.target && g.target < len(models)-1 {
			g.target++
		}
		g.s.Odds = sim.Odds{Switch: 2 + g.rng.IntN(30), Stop: 3000, Kill: []int{0, 4000, 1000}[g.rng.IntN(3)], Cut: []int{0, 1000, 5000}[g.rng.IntN(3)]}
		for i := range writers {
			g.s.Process(fmt.Sprint("p", i), g.work)
		}
		g.s.Process("change", g.change)
		if g.keeps {
			g.s.Process("keep", g.keep)
		}
		if err := g.s.Run(); err != nil {
			return fmt.Errorf("boot %d: %w", boot, err)
		}
		if !g.s.WasCut() && g.rng.IntN(2) == 0 {
			g.s.Cut(g.s.Patterns[g.rng.IntN(len(g.s.Patterns))])
		}
		if g.s.WasCut() {
			g.seen = 0 // what was seen was durable; but the process that saw it is gone
			g.did["cut"]++
		}
		g.s.Odds = sim.Odds{}
		end := g.rng.IntN(2) == 0 || boot == boots-1
		g.s.Process("look", func(p *sim.Proc) { g.look(p, end) })
		if err := g.s.Run(); err != nil {
			return fmt.Errorf("look after boot %d: %w", boot, err)
		}
		if len(g.wrong) > 0 {
			return fmt.Errorf("boot %d:\n%s", boot, joinWrong(g.wrong))
		}
	}
	return nil
}

func simulateEmbedders(t *testing.T, writers, seeds int, keeps bool) {
	simulateSeeds(t, seeds, func(seed uint64) (*sim.Sim, map[string]int, func() error) {
		g := newEmbedders(sim.New(seed), seed)
		g.keeps = keeps
		return g.s, g.did, func() error { return g.run(writers, 1+int(seed%4)) }
	})
}

func TestSimReembed(t *testing.T) { simulateEmbedders(t, 2, 60, false) }

func TestSimReembedOne(t *testing.T) { simulateEmbedders(t, 1, 40, false) }

// TestSimReembedKept also backs up and restores the store meanwhile.
func TestSimReembedKept(t *testing.T) { simulateEmbedders(t, 1, 25, true) }
