package upkeep

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
)

// Limits for finding refused edits: status must answer quickly, and checks tens of thousands of
// files in this time. memctl verify checks all files.
const (
	refusedWait  = 500 * time.Millisecond
	refusedShown = 3
)

// refused describes the edited files that the store cannot adopt, in the JSON output of status.
type refused struct {
	Count    int64         `json:"count"`
	Complete bool          `json:"complete"` // false: there was no time to check all files
	Files    []refusedEdit `json:"files"`    // the first of these files
}

type refusedEdit struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

func refusedIn(ctx context.Context, st *varve.Store) (r *refused, problems []error) {
	within, cancel := context.WithTimeout(ctx, refusedWait)
	defer cancel()
	r = &refused{Complete: true, Files: []refusedEdit{}}
	for e, err := range st.Admin().RefusedEdits(within) {
		switch {
		case err != nil:
			if r.Complete = false; within.Err() == nil {
				problems = append(problems, fmt.Errorf("checking the edited files: %w", err))
			}
			continue
		case r.Count < refusedShown:
			r.Files = append(r.Files, refusedEdit{e.Path, e.Err.Error()})
			problems = append(problems, fmt.Errorf("%s cannot be adopted: %w", e.Path, e.Err))
		}
		r.Count++
	}
	if more := r.Count - int64(len(r.Files)); more > 0 {
		problems = append(problems, fmt.Errorf("%s cannot be adopted", cli.Count(int(more), "more file", "more files")))
	}
	return r, problems
}

// vectors describes the files of the embeddings.
type vectors struct {
	Count     int64  `json:"count"`
	Dimension int    `json:"dimension"`
	Metric    string `json:"metric"`
	Bytes     int64  `json:"bytes"`
	// number of vectors that are missing, stale or superfluous as of the index; null: too many to
	// count here
	Drift   *int64 `json:"drift"`
	Misfits int64  `json:"misfits"` // embeddings of another dimension, for which no vector is stored
	Pending int64  `json:"pending"` // changes since the index was written
	Without int64  `json:"without"` // memories without an embedding, as of the index
	Model   string `json:"model,omitempty"`
	Next    string `json:"next_model,omitempty"` // the model of a reindex under way
	Older   int64  `json:"older,omitempty"`      // documents that the reindex has not rewritten yet
}

// mostCounted is the maximum number of vectors that status compares with the index, to answer
// quickly. memctl verify compares any number.
const mostCounted = 100_000

func vectorsOf(ctx context.Context, st *varve.Store, n *varve.Stats) (*vectors, error) {
	v := &vectors{Count: n.Vectors, Dimension: n.Dimension, Metric: n.Metric, Bytes: n.VectorBytes, Model: n.Model,
		Next: n.NextModel}
	if n.Memories+n.Assemblies > mostCounted {
		return v, nil
	}
	d, err := st.Vectors().Drift(ctx)
	if err != nil {
		return nil, err
	}
	drift := d.Missing + d.Stale + d.Ghosts
	v.Drift, v.Misfits, v.Pending, v.Without, v.Older = &drift, d.Misfits, d.Pending, d.Without, d.Older
	return v, nil
}

func (v *vectors) String() string {
	if v == nil {
		return "not readable now"
	}
	s := "none"
	if v.Dimension != 0 {
		s = fmt.Sprintf("%d of %s (%s), %s", v.Count, cli.Count(v.Dimension, "dimension", "dimensions"), v.Metric,
			cli.Size(v.Bytes))
	}
	if v.Model != "" {
		s += ", by " + v.Model
	}
	if v.Without != 0 && v.Dimension != 0 { // without a dimension there are no embeddings at all
		s += "; " + cli.Count(int(v.Without), "memory has", "memories have") + " no embedding"
		if v.Model != "" {
			s += ": memctl reindex --missing computes the embeddings"
		}
	}
	if v.Next != "" {
		s += fmt.Sprintf("; a reindex with the model %s is not complete: memctl reindex continues it", v.Next)
	}
	if v.Older != 0 {
		s += "; " + cli.Count(int(v.Older), "document has", "documents have") +
			" the previous model's embedding: memctl reindex rewrites them"
	}
	if v.Drift != nil && *v.Drift != 0 {
		s += "; " + cli.Count(int(*v.Drift), "vector differs", "vectors differ") +
			" from the index: the next flush or search corrects this"
	}
	if v.Misfits != 0 {
		s += "; " + cli.Count(int(v.Misfits), "embedding", "embeddings") + " of another dimension, for which no " +
			"vector is stored"
	}
	if v.Pending != 0 && v.Dimension != 0 {
		s += "; " + cli.Count(int(v.Pending), "change", "changes") + " since"
	}
	return s
}

// limits are the limits of the store. A value of 0 means no limit.
type limits struct {
	Memories        int64  `json:"max_memories"`
	Bytes           int64  `json:"max_bytes"`
	SessionMemories int64  `json:"max_session_memories"`
	SessionBytes    int64  `json:"max_session_bytes"`
	AtLimit         string `json:"at_limit"`
	MaxAge          int64  `json:"max_age"`
}

func limitsIn(c varve.Config) *limits {
	l := &limits{c.MaxMemories, c.MaxBytes, c.MaxSessionMemories, c.MaxSessionBytes, "", c.MaxAge}
	if *l == (limits{}) {
		return nil
	}
	l.AtLimit = cmp.Or(c.AtLimit, varve.AtLimitRefuse)
	return l
}

// text returns a line with the used part of each limit.
func (l *limits) text(s *State) string {
	var parts []string
	if l.Memories > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s", s.Memories, cli.Count(int(l.Memories), "memory", "memories")))
	}
	if l.Bytes > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s", cli.Size(s.Bytes), cli.Size(l.Bytes)))
	}
	if l.SessionMemories > 0 {
		parts = append(parts, cli.Count(int(l.SessionMemories), "memory", "memories")+" per session")
	}
	if l.SessionBytes > 0 {
		parts = append(parts, cli.Size(l.SessionBytes)+" per session")
	}
	if len(parts) > 0 {
		parts = append(parts, "then "+strings.ReplaceAll(l.AtLimit, "_", " "))
	}
	if l.MaxAge > 0 {
		parts = append(parts, fmt.Sprintf("memories are deleted %s after their last write", span.Seconds(l.MaxAge)))
	}
	return strings.Join(parts, "; ")
}

// readOnly returns the reason why this user cannot write to the store, as text.
func readOnly(p *varve.PermissionError) string {
	s := fmt.Sprintf("%s %s: reading works, changes are refused", p.Path, p.Why)
	if p.Fix != "" {
		s += ": " + p.Fix
	}
	return s
}
