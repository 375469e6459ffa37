package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
	"github.com/varve-db/varve/internal/queryargs"
	"github.com/varve-db/varve/internal/timearg"
	"github.com/varve-db/varve/memstore"
)

// filters returns the filters that the arguments of a call select.
func (a args) filters(now time.Time) (all []varve.Filter, err error) {
	if v := a.text("session"); v != "" {
		all = append(all, varve.InSession(v))
	}
	if v := a.text("category"); v != "" {
		all = append(all, varve.InCategory(v))
	}
	if v := a.text("key"); v != "" {
		all = append(all, varve.WithKey(v))
	}
	times, err := queryargs.ByTime(now, func(name string) (string, bool) {
		value := a.text(argument(name))
		return value, value != ""
	}, func(name string) string { return argument(name) + ":" })
	if err != nil {
		return nil, err
	}
	all = append(all, times...)
	for _, tag := range a.texts("tags") {
		all = append(all, varve.WithTag(tag))
	}
	for _, c := range a.texts("where") {
		f, err := varve.Where(c)
		if err != nil {
			return nil, fmt.Errorf("where: %w", err)
		}
		all = append(all, f)
	}
	return all, nil
}

// argument returns the name of the argument by which the tools take the filter with this name: the same name with
// underscores in place of hyphens.
func argument(name string) string { return strings.ReplaceAll(name, "-", "_") }

// note sets p.why, the explanation of an empty first page, if the conditions in the argument "where" seem to have a
// mistake.
func (p *page) note(ctx context.Context, c *memoryCall) {
	if len(p.items) > 0 || c.text("cursor") != "" || len(c.texts("where")) == 0 {
		return
	}
	others := maps.Clone(c.args)
	delete(others, "where")
	if filters, err := others.filters(c.now); err == nil {
		p.why = queryargs.Nothing(ctx, c.view, c.texts("where"), filters...)
	}
}

func tagsOf(m *varve.Memory) []string {
	list, _ := m.Metadata["tags"].([]any)
	var all []string
	for _, t := range list {
		if s, ok := t.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

func (c *memoryCall) recall(ctx context.Context) (*answer, error) {
	query := c.text("query")
	if strings.TrimSpace(query) == "" {
		return nil, errors.New("query is empty → give words to search for, or use recent")
	}
	if len(query) > maxQuery {
		return nil, fmt.Errorf("query: %d bytes exceed the limit of %d: use fewer words", len(query), maxQuery)
	}
	said, span, rest := timeWords(query, c.now)
	if said != "" && rest == "" && c.timeless() {
		return c.recentIn(ctx, span, fmt.Sprintf("by time alone: %s (%s)", said, span.String()))
	}
	filters, err := c.filters(c.now)
	if err != nil {
		return nil, err
	}
	q, order, err := c.query()
	if err != nil {
		return nil, err
	}
	by, at := c.text("by"), place{}
	if cursor := c.text("cursor"); cursor != "" {
		if by, at, err = c.s.pages.place(cursor, c.signature()); err != nil {
			return nil, err
		}
	}
	var notes []string
	q.Note = func(note string) {
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	limit := c.number("limit", 10)
	q.Limit = limit
	hits, more, by, err := c.search(ctx, &q, by, at, filters)
	if err != nil {
		return nil, err
	}
	p, last := page{chars: c.number("max_chars", defaultChars), view: c.view}, varve.Hit{}
	shown := maps.Clone(at.shown)
	if shown == nil {
		shown = map[string]bool{}
	}
	for i := range hits {
		m, err := c.view.Get(ctx, hits[i].ID) // one at a time: each may be large
		if err == nil {
			if !p.found(&m, &hits[i]) {
				more = true
				break
			}
		} else if !errors.Is(err, varve.ErrNotFound) && !isOne(err) {
			return nil, err
		}
		last, shown[hits[i].ID] = hits[i], true
	}
	found, err := c.noteHits(ctx, &p, q, filters)
	if err != nil {
		return nil, err
	}
	if order != nil {
		slices.SortStableFunc(p.items, func(a, b item) int { return order.Compare(&a.of, &b.of) })
	}
	if more && last.ID != "" {
		p.next = c.s.pages.keep(by, c.signature(), last.Score, last.ID, shown)
	}
	if p.note(ctx, c); p.why != "" {
		notes = append(notes, p.why)
	}
	if said != "" && c.timeless() {
		notes = append(notes, fmt.Sprintf("%q is taken as words → use since and until to search in a time range", said))
	}
	p.why = strings.Join(notes, "; ")
	lines := append(p.lines(c), found.lines...)
	if len(lines) == 0 {
		lines = append(lines, c.emptyAdvice())
	}
	if p.why != "" {
		lines = append(lines, "note: "+p.why)
	}
	return c.linesAnswer(lines, func(w *writer) {
		w.open('{')
		p.write(w)
		found.write(w)
		w.text("by", by)
		p.writeNext(w)
		w.close('}')
	}), nil
}

// timeless reports whether the arguments have no filter by time.
func (a args) timeless() bool {
	for _, name := range queryargs.Times() {
		if a.text(argument(name)) != "" {
			return false
		}
	}
	return true
}

// emptyAdvice returns the advice that is shown if nothing was found.
func (c *memoryCall) emptyAdvice() string {
	if c.text("cursor") != "" {
		return "no more"
	}
	var narrow []string
	for _, p := range []string{"session", "category", "key", "tags", "where", "since", "until", "min_score"} {
		if _, ok := c.args[p]; ok && (c.text(p) != "" || len(c.texts(p)) > 0 || p == "min_score") {
			narrow = append(narrow, p)
		}
	}
	if len(narrow) > 0 {
		return "nothing found → try without " + strings.Join(narrow, ", ")
	}
	return `nothing found → try fewer or other words, or recent {"when":"last week"}`
}

// query returns the search that the arguments request, and the order in which the hits of a page are shown.
func (c *memoryCall) query() (varve.Query, *memstore.Order, error) {
	var q varve.Query
	if err := c.checkCombinedOnly(c.s.o.Embed != nil); err != nil {
		return q, nil, err
	}
	order, err := c.order("")
	switch share, ok := c.args["share"]; {
	case err != nil:
		return q, nil, err
	case order != nil && (order.By == memstore.OrderScore || order.By == memstore.OrderSize):
		return q, nil, fmt.Errorf("sort: %q: must be created, id, timestamp or updated; a - before the name reverses "+
			"the order", c.text("sort"))
	case ok && !(c.float("share") > 0):
		return q, nil, fmt.Errorf("share: %v: must be more than 0", share)
	}
	q = varve.Query{Text: c.text("query"), PerSession: c.number("per_session", 0),
		Fragment: c.number("fragment", 0), Explain: c.flag("explain"), MinScore: c.float("min_score")}
	q.Share, q.RankFusion = c.float("share"), c.flag("ranks")
	q.Recency, q.Importance = c.float("recency"), c.float("importance")
	for _, name := range []string{"recency", "importance"} {
		if given, ok := c.args[name]; ok && !(c.float(name) >= 0 && c.float(name) <= varve.MostBoost) {
			return q, nil, fmt.Errorf("%s: %v: must be from 0 to %d", name, given, varve.MostBoost)
		}
	}
	if days, ok := c.args["half_life"]; ok {
		switch q.HalfLife = time.Duration(c.float("half_life") * float64(24*time.Hour)); {
		case q.Recency == 0:
			return q, nil, errors.New("half_life: needs recency → give both, or omit it")
		case !(q.HalfLife > 0 && c.float("half_life") <= timearg.MostDays):
			return q, nil, fmt.Errorf("half_life: %v: must be more than 0 and at most %d days", days, timearg.MostDays)
		}
	}
	return q, order, nil
}

// signature returns a text made from the arguments that must not change between the pages of one recall.
func (c *memoryCall) signature() string {
	var b strings.Builder
	b.WriteString(c.view.Project())
	for _, name := range slices.Sorted(maps.Keys(c.args)) {
		if name != "cursor" && name != "limit" && name != "max_chars" && name != "explain" && name != "fragment" {
			fmt.Fprintf(&b, "\x00%s\x00%v", name, c.args[name])
		}
	}
	return b.String()
}

// checkCombinedOnly returns an error if the call has an argument that is only for a search by both words and meaning,
// although the call requests another kind of search or hasEmbedder is false.
func (a args) checkCombinedOnly(hasEmbedder bool) error {
	for _, name := range []string{"share", "ranks"} {
		switch _, given := a[name]; {
		case !given || name == "ranks" && !a.flag(name):
		case a.text("by") == "words" || a.text("by") == "meaning":
			return fmt.Errorf(`%s: applies only to a search by "both", not by %q: omit one of them`, name, a.text("by"))
		case !hasEmbedder:
			return fmt.Errorf("%s: applies only to a search by words and meaning, which needs an embedder, but this "+
				"server has none → omit it", name)
		}
	}
	return nil
}

// order returns the order that the argument sort requests, or nil if there is no such argument. A listing in this
// order begins after place, the cursor of the previous page; "" means the beginning.
func (a args) order(place string) (*memstore.Order, error) {
	sort := a.text("sort")
	if sort == "" {
		return nil, nil
	}
	o, err := memstore.ParseOrder(sort, place)
	if err != nil && place != "" {
		if _, serr := memstore.ParseOrder(sort, ""); serr == nil {
			return nil, fmt.Errorf("cursor %q: must be the value of next in the previous page, with the same sort", place)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sort: %w", err)
	}
	return o, nil
}

// maxQuery is the maximum length of a query in bytes.
const maxQuery = 1 << 20

// recallBy are the permitted values of the argument "by".
var recallBy = []string{"both", "meaning", "words"}

// search searches by words and meaning if there is an embedder. If the search by meaning fails or finds nothing,
// search falls back to words, unless mode names the kind of search. pos is the place at which the page begins.
// used is the kind of search that produced the hits. Further pages, and a search with min_score, use only one kind
// of search, because scores by words have another scale.
func (c *memoryCall) search(ctx context.Context, query *varve.Query, mode string, pos place,
	filters []varve.Filter) (hits []varve.Hit, more bool, used string, err error) {
	q := *query
	o := &c.s.o
	if (mode == "meaning" || mode == "both") && o.Embed == nil {
		return nil, false, "", fmt.Errorf(`by %q needs an embedder, and this server has none: search by "words"`, mode)
	}
	if mode != "words" && o.Embed != nil {
		list, err := o.Embed(ctx, []string{q.Text})
		if err == nil && len(list) != 1 {
			err = fmt.Errorf("the embedder returned %d vectors for one text", len(list))
		}
		if err == nil {
			near := q
			if near.Vector, near.Model = list[0], o.EmbedModel; mode == "meaning" {
				near.Text, near.Share, near.RankFusion = "", 0, false
			}
			hits, more, err = c.all(ctx, near, pos, filters)
			*query = near
		}
		if mode != "" || len(hits) > 0 || ctx.Err() != nil || err == nil && q.MinScore > 0 {
			return hits, more, cmp.Or(mode, "both"), err
		}
		if err != nil {
			o.Logger.Warn("vector search failed, using word search", "err", err)
		}
	}
	q.Share, q.RankFusion = 0, false
	*query = q
	hits, more, err = c.all(ctx, q, pos, filters)
	return hits, more, "words", err
}

// all returns the hits after the place pos, and reports whether there may be more hits. It skips memories that
// cannot be read.
func (c *memoryCall) all(ctx context.Context, q varve.Query, pos place, filters []varve.Filter) ([]varve.Hit, bool,
	error) {
	limit := q.Limit
	if pos.lost {
		q.Limit = lostHits
	}
	q.Trim = func(m *varve.Memory) { *m = varve.Memory{ID: m.ID} }
	hits, more, err := c.view.Search(ctx, q, pos.shown, filters...)
	if err != nil && hits != nil {
		c.s.o.Logger.Warn("searching", "err", err)
		err = nil
	}
	if pos.lost {
		hits = pos.hitsAfter(hits)
		hits, more = hits[:min(limit, len(hits))], more || len(hits) > limit
	}
	return hits, more, err
}

// page collects the memories that one answer shows.
type page struct {
	items []item
	chars int // number of characters that are left
	next  string
	why   string // reason why the page is empty
	view  *project.View
}

// item is the part of a memory that an answer shows; the memory itself may be much larger.
type item struct {
	id, text, session, category, key string
	why                              string
	tags                             []string
	cut                              bool
	shared                           bool // the memory is in the part that all projects share
	score                            float64
	of                               varve.Memory // the memory's id, times, category and key
}

// maxLabels is the maximum total length in bytes of category, key and tags that are shown with a memory. It leaves most
// characters of an answer for the texts.
const maxLabels = 4096

func shortLabels(m *varve.Memory) bool {
	n := len(m.Category()) + len(m.Key())
	for _, t := range tagsOf(m) {
		n += len(t)
	}
	return n <= maxLabels && len(tagsOf(m)) <= maxLabels
}

// add adds a memory with its score to the page, and returns true. If the text does not fit and the page already has a
// memory, add changes nothing and returns false. The first memory is always added; its text is cut if it is too long.
func (p *page) add(m *varve.Memory, score float64) bool {
	text, isCut := cut(m.Content, p.chars)
	if isCut && len(p.items) > 0 {
		return false
	}
	p.chars -= utf8.RuneCountInString(text)
	it := item{id: m.ID, text: text, session: m.Session(), cut: isCut, score: score,
		of: varve.Memory{ID: m.ID, Timestamp: m.Timestamp, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
			ExpiresAt: m.ExpiresAt}}
	if isCut {
		it.text = strings.Clone(text)
	}
	it.shared = p.view.Shared(m)
	if shortLabels(m) {
		it.category, it.key, it.tags = m.Category(), m.Key(), tagsOf(m)
		it.of.Metadata = map[string]any{"category": it.category, "key": it.key}
	} else {
		it.cut = true
	}
	p.items = append(p.items, it)
	return true
}

// found adds a hit to the page, as add does. If the hit has a fragment that is shorter than the text of the memory,
// found adds the fragment in place of the text.
func (p *page) found(m *varve.Memory, h *varve.Hit) bool {
	part := h.Fragment != nil && (h.Fragment.From > 0 || h.Fragment.Cut)
	if part {
		m.Content = h.Fragment.Text
	}
	if !p.add(m, h.Score) {
		return false
	}
	it := &p.items[len(p.items)-1]
	it.cut = it.cut || part
	if h.Explanation != nil {
		it.why = explanationText(h.Explanation)
	}
	return true
}

// explanationText returns an explanation of a score as text: each word of the query with its score and the fields
// that contain the word, the score from other memories of the session, the similarity of meaning, and the scores
// from recency and importance.
func explanationText(e *varve.Explanation) string {
	var all []string
	for _, w := range e.Words {
		where := w.Fields
		if w.Near > 0 {
			where = append(slices.Clone(where), "neighbours")
		}
		all = append(all, fmt.Sprintf("%s %.2f (%s)", w.Word, w.Score, strings.Join(where, ", ")))
	}
	if e.Session > 0 {
		all = append(all, fmt.Sprintf("session %.2f", e.Session))
	}
	if e.Similarity != 0 {
		all = append(all, fmt.Sprintf("meaning %.2f", e.Similarity))
	}
	if e.Recency > 0 {
		all = append(all, fmt.Sprintf("recency %.2f", e.Recency))
	}
	if e.Importance > 0 {
		all = append(all, fmt.Sprintf("importance %.2f", e.Importance))
	}
	return strings.Join(all, "; ")
}

func (p *page) write(w *writer) {
	w.member("memories")
	list(w, p.items, (*writer).item)
}

func (p *page) writeNext(w *writer) {
	if p.next != "" {
		w.text("next", p.next)
	}
	if p.why != "" {
		w.text("note", p.why)
	}
}

func (w *writer) item(i *item) {
	w.next()
	w.open('{')
	w.text("id", i.id)
	w.text("text", i.text)
	if i.cut {
		w.flag("cut", true)
	}
	if i.score != 0 {
		w.score("score", i.score)
	}
	for _, m := range []struct{ name, value string }{{"session", i.session}, {"category", i.category}, {"key", i.key}} {
		if m.value != "" {
			w.text(m.name, m.value)
		}
	}
	if len(i.tags) > 0 {
		w.texts("tags", i.tags)
	}
	if t := i.of.Timestamp; !t.IsZero() && t.Sub(i.of.UpdatedAt).Abs() >= time.Minute {
		w.text("happened", t.Format(time.RFC3339))
	}
	w.text("written", i.of.UpdatedAt.Format(time.RFC3339))
	if t := i.of.ExpiresAt; !t.IsZero() {
		w.text("expires", t.Format(time.RFC3339))
	}
	if i.why != "" {
		w.text("why", i.why)
	}
	w.close('}')
}

// cut returns the first characters of a text, at most chars, and reports whether it cut the text.
func cut(text string, chars int) (short string, isCut bool) {
	if len(text) <= chars {
		return text, false
	}
	for i := range text {
		if chars--; chars < 0 {
			return text[:i], true
		}
	}
	return text, false
}
