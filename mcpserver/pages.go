package mcpserver

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
)

// pages records what earlier pages of the tool recall have shown. A cursor names a place in the list of hits, not a
// count: the next page has the best hits that were not shown yet. So no hit is skipped or repeated, whatever was
// forgotten, written or ranked differently in between.
//
//	words 3 12.3 …a1b2c3d4e5      kind of search, number of the page, score and id of the last hit on the page
//
// A server that does not know the number of the page, for example because it was restarted, continues after the hit
// with that id. If that hit no longer exists, it continues after the score.
type pages struct {
	mu   sync.Mutex
	last int
	list []*shownPage // the newest cursor is last
}

type shownPage struct {
	number     int
	signature  uint64
	by, ending string
	score      string
	shown      map[string]bool
}

// Limits: the number of cursors that are remembered, the number of hits on all pages of one recall, and the number of
// hits among which the place of a cursor that is no longer remembered is searched.
const (
	mostPages = 64
	mostShown = 100_000
	lostHits  = 10_000
)

var seed = maphash.MakeSeed()

// place is the place in a list of hits at which a page begins: after the hits in shown. If lost is set, the server
// does not know these hits, and the page begins after the hit with the given ending of the id, or after the score.
type place struct {
	shown  map[string]bool
	lost   bool // only the score and the ending of the id are known, and shown is nil
	score  float64
	ending string
}

// keep remembers which hits a page has shown, and returns the cursor for the next page. mode is the kind of search.
// signature is a text that all calls for the pages of one recall have in common. score and id are those of the last
// hit on the page. shown has the ids of all hits on this page and the previous ones.
func (p *pages) keep(mode, signature string, score float64, id string, shown map[string]bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	k := &shownPage{number: p.last, signature: maphash.String(seed, signature), by: mode, ending: project.Ending(id),
		score: strconv.FormatFloat(score, 'g', 6, 64), shown: shown}
	if p.list = append(p.list, k); len(p.list) > mostPages {
		p.list = slices.Delete(p.list, 0, 1)
	}
	return fmt.Sprintf("%s %d %s %s", mode, k.number, k.score, k.ending)
}

// place returns the kind of search (mode) and the place in the list of hits (pos) that a cursor denotes. It returns an
// error if the cursor is invalid, or if the page before had another signature.
func (p *pages) place(cursor, signature string) (mode string, pos place, err error) {
	bad := func(why string) (string, place, error) {
		short, _ := cut(cursor, longestProp)
		return "", place{}, fmt.Errorf("cursor %q: %s", short, why)
	}
	parts := strings.SplitN(cursor, " ", 4)
	if len(parts) != 4 || !slices.Contains(recallBy, parts[0]) {
		return bad("must be the cursor that the previous page returned")
	}
	number, nerr := strconv.Atoi(parts[1])
	score, serr := strconv.ParseFloat(parts[2], 64)
	if nerr != nil || serr != nil || parts[3] == "" {
		return bad("must be the cursor that the previous page returned")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.list {
		if k.number != number || k.ending != parts[3] || k.by != parts[0] || k.score != parts[2] {
			continue
		}
		if k.signature != maphash.String(seed, signature) {
			return bad("belongs to a call with other arguments → repeat the arguments of the call for the previous " +
				"page")
		}
		if len(k.shown) >= mostShown {
			return bad(fmt.Sprintf("recall returns at most the first %d; use a more specific query, or recent", mostShown))
		}
		return k.by, place{shown: k.shown}, nil
	}
	return parts[0], place{lost: true, score: score, ending: strings.TrimPrefix(parts[3], "…")}, nil
}

// hitsAfter returns the hits after p, the place at which the previous page ended.
func (p *place) hitsAfter(hits []varve.Hit) []varve.Hit {
	for i, h := range hits {
		if strings.HasSuffix(h.ID, p.ending) {
			return hits[i+1:]
		}
	}
	i := slices.IndexFunc(hits, func(h varve.Hit) bool { return h.Score <= p.score })
	if i < 0 {
		return nil
	}
	return hits[i:]
}
