package page

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/working"
)

// shownScopes is the template data of the list of scopes of working memory.
type shownScopes struct {
	Rows   []shownScope
	More   bool
	Unread []string
}

type shownScope struct {
	Key, Level, Name string
	Stats            *working.Stats
}

func (p *Page) working(r *request) (*view, error) {
	d := &shownScopes{}
	for s, err := range r.st.Working().Home().Scopes(r.ctx) {
		if err != nil {
			if fatal(err) {
				return nil, err
			}
			d.Unread = append(d.Unread, err.Error())
			break
		}
		if d.More = len(d.Rows) == 4*MostRows; d.More {
			break
		}
		d.Rows = append(d.Rows, shownScope{Key: s.Key(), Level: string(s.Level()), Name: s.String()})
	}
	slices.SortFunc(d.Rows, func(a, b shownScope) int { return cmp.Compare(a.Key, b.Key) })
	for i := range d.Rows[:min(len(d.Rows), MostRows)] {
		if err := p.count(r, &d.Rows[i]); err != nil && !errors.Is(err, varve.ErrNotFound) {
			if fatal(err) {
				return nil, err
			}
			d.Unread = append(d.Unread, d.Rows[i].Name+": "+err.Error())
		}
	}
	return &view{template: "working", title: "Working memory", data: d}, nil
}

// count sets row.Stats, the statistics of a scope of working memory, such as its number of keys and bytes.
func (p *Page) count(r *request, row *shownScope) error {
	m, err := p.open(r, row.Key)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }() // nothing was written
	s, err := m.Stats(r.ctx)
	if err != nil {
		return err
	}
	row.Stats = &s
	return nil
}

// open opens the working memory of a scope. If the scope does not exist, open returns an error, because opening the
// scope would create it.
func (p *Page) open(r *request, key string) (*working.Memory, error) {
	s, err := working.ParseScope(key)
	if err != nil {
		return nil, err
	}
	res, err := r.st.Working().Home().Do(r.ctx, &working.Request{Scope: s, Op: working.OpCount{}})
	if err != nil {
		return nil, err
	}
	if res.Counts.Created.IsZero() {
		return nil, fmt.Errorf("scope %s: %w", key, varve.ErrNotFound)
	}
	return r.st.Working().Open(r.ctx, s, &working.Options{AsWritten: true})
}

// shownState is the template data of the state of a scope of working memory, or of one of its checkpoints.
type shownState struct {
	Key, Name   string
	Values      []fact
	Expire      map[string]time.Duration
	Task        *working.Task
	Notes       []working.Note
	More        int // number of notes that are not shown
	Checkpoints []working.CheckpointInfo
	Checkpoint  *working.CheckpointInfo // checkpoint that is shown; nil: the current state
	Unread      []string
}

func (d *shownState) of(s *working.Snapshot) {
	for _, name := range sortedNames(s.Values) {
		d.Values = append(d.Values, fact{Name: visible(name),
			Value: visible(human.Head(valueText(s.Values[name]), MostShown/8))})
		if len(d.Values) == 10*MostRows {
			break
		}
	}
	d.Expire, d.Task, d.Notes = map[string]time.Duration{}, s.Task, s.Notes
	for name, ttl := range s.TTL {
		d.Expire[visible(name)] = ttl.Round(time.Second)
	}
	if n := len(s.Notes); n > 4*MostRows {
		d.Notes, d.More = s.Notes[n-4*MostRows:], n-4*MostRows
	}
}

func (p *Page) scope(r *request) (*view, error) {
	m, err := p.open(r, r.get("key"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }() // nothing was written
	d := &shownState{Key: r.get("key"), Name: m.Scope().String()}
	s, err := m.Snapshot(r.ctx)
	if err != nil {
		return nil, err
	}
	d.of(s)
	if d.Checkpoints, err = m.Checkpoints(r.ctx); err != nil {
		d.Unread = append(d.Unread, err.Error())
	}
	slices.Reverse(d.Checkpoints)
	return &view{template: "scope", title: "Working memory of " + shortened(visible(d.Name), 60), data: d}, nil
}

func (p *Page) checkpoint(r *request) (*view, error) {
	m, err := p.open(r, r.get("key"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }() // nothing was written
	s, err := m.LoadCheckpoint(r.ctx, r.get("id"))
	if err != nil {
		return nil, err
	}
	d := &shownState{Key: r.get("key"), Name: m.Scope().String(), Checkpoint: &s.Info}
	d.of(s)
	return &view{template: "scope", title: "Checkpoint", data: d}, nil
}

// checkpointRestore restores a scope of working memory to the state of a checkpoint. It first saves the current state
// as another checkpoint.
func (p *Page) checkpointRestore(r *request) (*view, error) {
	m, err := p.open(r, r.get("key"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }() // Restore is durable
	kept, err := m.Restore(r.ctx, r.get("id"))
	if err != nil {
		return nil, err
	}
	return &view{said: "Restored; the previous state was saved as checkpoint " + kept.ID, goTo: link("scope", "key",
		r.get("key"))}, nil
}
