package project

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/varve-db/varve"
)

// Limits of a search: the number of hits that are ranked at first, and the factor by which that number grows
// while too few of them are in the view.
const (
	firstRanked = 40
	moreRanked  = 4
	mostRanked  = 1_000_000 // maximum number of ranked hits in a search
	// mostTied is the number of ranked hits up to which a search looks for all hits with the same score as the last
	// one, in order to sort them by time. Without this limit, all memories would have to be ranked for a word that
	// every memory has.
	mostTied = 2_000
)

// facts has the properties of a memory that determine the order of hits.
type facts struct {
	written      time.Time
	session      string
	supersededBy string
	seen         bool
}

// Search returns the best memories of the view that pass the filters and are not in shown, at most q.Limit of them, and
// reports whether more exist. q.Offset must be 0. The package comment describes the order.
func (v *View) Search(ctx context.Context, q varve.Query, shown map[string]bool,
	filters ...varve.Filter) (hits []varve.Hit, more bool, err error) {
	limit, perSession, trim, note := q.Limit, q.PerSession, q.Trim, q.Note
	of := map[string]facts{}
	q.Kinds = []varve.Kind{varve.KindMemory} // of notes see View.Notes
	q.PerSession = 0                         // the hits of a session of another project would count too
	over := v.overrides()
	q.Trim = func(m *varve.Memory) {
		by, _ := m.Metadata[SupersededBy].(string)
		if _, known := of[m.ID]; !known {
			of[m.ID] = facts{m.UpdatedAt, m.Session(), by, v.sees(m) && !over.isOverridden(ctx, m)}
		}
		if trim != nil {
			trim(m)
		}
	}
	if note == nil {
		note = func(string) {}
	}
	var notes []string
	q.Note = func(s string) {
		if !slices.Contains(notes, s) {
			notes = append(notes, s)
			note(s)
		}
	}
	ended, err := v.widening(ctx, q, filters, firstRanked+2*(limit+len(shown)), func(all []varve.Hit, most int) bool {
		hits = v.chosen(all, of, perSession, shown)
		// Hits of the same score as the last one that is returned are all needed for their order.
		return len(hits) > limit && (most > mostTied || digits(hits[limit].Score) != digits(all[len(all)-1].Score))
	})
	if !ended {
		return nil, false, err
	}
	v.supersede(ctx, &hits, of, shown, len(filters) == 0, trim)
	return hits[:min(limit, len(hits))], len(hits) > limit, err
}

// Notes returns the best notes of the view that pass the filters, at most q.Limit of them. q.Offset must be 0.
func (v *View) Notes(ctx context.Context, q varve.Query, filters ...varve.Filter) (hits []varve.Hit, err error) {
	limit := q.Limit
	q.Kinds, q.Trim, q.Note = []varve.Kind{varve.KindNote}, nil, nil
	ended, err := v.widening(ctx, q, filters, firstRanked+limit, func(all []varve.Hit, _ int) bool {
		hits = slices.DeleteFunc(all, func(h varve.Hit) bool { return !v.seesNote(h.ID) })
		return len(hits) >= limit
	})
	if !ended {
		return nil, err
	}
	return hits[:min(limit, len(hits))], err
}

// widening searches for the best n hits, then for moreRanked times as many, and so on, and passes each result to
// enough, with the number of hits that was searched for. It ends when enough returns true, when the store has no
// further hits, or when it has searched for mostRanked hits; ended is true then. If a search returns an error and no
// hits, widening ends with ended false. err is the error of the last search.
func (v *View) widening(ctx context.Context, q varve.Query, filters []varve.Filter, n int,
	enough func(all []varve.Hit, most int) bool) (ended bool, err error) {
	for ; ; n *= moreRanked {
		q.Limit = min(n, mostRanked)
		all, err := v.st.Search(ctx, q, filters...)
		if err != nil && all == nil {
			return false, err
		}
		whole := len(all) < q.Limit || q.Limit == mostRanked
		if enough(all, q.Limit) || whole {
			return true, err
		}
	}
}

// chosen returns those hits in all that are in the view, are not in shown, and are not more than perSession hits of
// their session (0: no limit). The best hit comes first. Scores are compared as digits rounds them; of hits with the
// same score other than 0, the memory that was written last comes first. byID has the facts about each hit.
func (v *View) chosen(all []varve.Hit, byID map[string]facts, perSession int, shown map[string]bool) []varve.Hit {
	hits := make([]varve.Hit, 0, len(all))
	for _, h := range all {
		if byID[h.ID].seen {
			hits = append(hits, h)
		}
	}
	slices.SortStableFunc(hits, func(a, b varve.Hit) int {
		x, y := digits(a.Score), digits(b.Score)
		if x != y || x == 0 {
			return cmp.Compare(y, x)
		}
		return cmp.Or(byID[b.ID].written.Compare(byID[a.ID].written), cmp.Compare(b.ID, a.ID))
	})
	sessions := map[string]int{}
	return slices.DeleteFunc(hits, func(h varve.Hit) bool {
		s := byID[h.ID].session
		sessions[s]++
		return perSession > 0 && s != "" && sessions[s] > perSession || shown[h.ID]
	})
}

// digits returns a score rounded to the three digits that answers show.
func digits(score float64) float64 {
	if score == 0 || math.IsInf(score, 0) || math.IsNaN(score) {
		return score
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(score)))-2)
	return math.Round(score/unit) * unit
}

// supersede moves each superseded memory in list behind the memory that replaces it. If the replacing memory is not in
// list and fetch is true, supersede reads that memory, calls trim with it unless trim is nil, and inserts it before
// the superseded one. It moves nothing if the replacing memory is in shown.
func (v *View) supersede(ctx context.Context, list *[]varve.Hit, byID map[string]facts, shown map[string]bool,
	fetch bool, trim func(*varve.Memory)) {
	hits, moves := *list, 0
	for i := 0; i < len(hits) && moves < 2*len(hits); i++ {
		h := hits[i]
		by := byID[h.ID].supersededBy
		if by == "" || by == h.ID || shown[by] {
			continue
		}
		at := slices.IndexFunc(hits, func(o varve.Hit) bool { return o.ID == by })
		if at >= 0 && at < i {
			continue
		}
		moves++
		if at < 0 {
			m, err := v.Get(ctx, by)
			if !fetch || err != nil {
				continue
			}
			next, _ := m.Metadata[SupersededBy].(string)
			byID[by] = facts{m.UpdatedAt, m.Session(), next, true}
			if trim != nil {
				trim(&m)
			}
			hits = slices.Insert(hits, i, varve.Hit{ID: by, Score: h.Score, Memory: m})
		} else {
			hits = slices.Insert(slices.Delete(hits, i, i+1), at, h)
		}
		i-- // the memory that is here now may be superseded too
	}
	*list = hits
}
