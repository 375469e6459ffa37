package mcpserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/queryargs"
	"github.com/varve-db/varve/internal/timearg"
	"github.com/varve-db/varve/memstore"
)

// filters returns the filters in the arguments of a call.
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

// argument returns the name of a filter as the tools spell it.
func argument(name string) string { return strings.ReplaceAll(name, "-", "_") }

// chooses returns the name of an argument that selects or orders memories; "" if none is given.
func (a args) chooses() string {
	for _, name := range append([]string{"session", "category", "key", "tags", "where", "sort"}, queryargs.Times()...) {
		if name = argument(name); a.text(name) != "" || len(a.texts(name)) > 0 {
			return name
		}
	}
	return ""
}

// note sets the reason why a first page is empty, if the call seems to have a mistake.
func (p *page) note(ctx context.Context, s *server, a args) {
	if len(p.items) > 0 || a.text("cursor") != "" || len(a.texts("where")) == 0 {
		return
	}
	others := maps.Clone(a)
	delete(others, "where")
	if filters, err := others.filters(s.o.Clock()); err == nil {
		p.why = queryargs.Nothing(ctx, s.st, a.texts("where"), filters...)
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

func (s *server) recall(ctx context.Context, a args) (*answer, error) {
	query := a.text("query")
	if strings.TrimSpace(query) == "" {
		return nil, errors.New("query is empty → give words to search for, or use list_memories")
	}
	if len(query) > maxQuery {
		return nil, fmt.Errorf("query: %d bytes exceed the limit of %d: use fewer words", len(query), maxQuery)
	}
	filters, err := a.filters(s.o.Clock())
	if err != nil {
		return nil, err
	}
	if err := a.both(s.o.Embed != nil); err != nil {
		return nil, err
	}
	by, offset := a.text("by"), 0
	if cursor := a.text("cursor"); cursor != "" {
		if by, offset, err = recallCursor(cursor); err != nil {
			return nil, err
		}
	}
	order, err := a.order("")
	switch share, ok := a["share"]; {
	case err != nil:
		return nil, err
	case order != nil && (order.By == memstore.OrderScore || order.By == memstore.OrderSize):
		return nil, fmt.Errorf("sort: %q: must be created, id, timestamp or updated, or one of them after -", a.text("sort"))
	case ok && !(a.float("share") > 0):
		return nil, fmt.Errorf("share: %v: must be more than 0", share)
	}
	limit := a.number("limit", 10)
	q := varve.Query{Text: query, Offset: offset, Limit: limit + 1, PerSession: a.number("per_session", 0),
		Fragment: a.number("fragment", 0), Explain: a.flag("explain"), MinScore: a.float("min_score")}
	q.Share, q.RankFusion = a.float("share"), a.flag("ranks")
	q.Recency, q.Importance = a.float("recency"), a.float("importance")
	for _, name := range []string{"recency", "importance"} {
		if given, ok := a[name]; ok && !(a.float(name) >= 0 && a.float(name) <= varve.MostBoost) {
			return nil, fmt.Errorf("%s: %v: must be from 0 to %d", name, given, varve.MostBoost)
		}
	}
	if days, ok := a["half_life"]; ok {
		switch q.HalfLife = time.Duration(a.float("half_life") * float64(24*time.Hour)); {
		case q.Recency == 0:
			return nil, errors.New("half_life: is about recency → give both, or omit it")
		case !(q.HalfLife > 0 && a.float("half_life") <= timearg.MostDays):
			return nil, fmt.Errorf("half_life: %v: must be more than 0 and at most %d days", days, timearg.MostDays)
		}
	}
	var notes []string
	q.Note = func(note string) {
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	hits, by, err := s.search(ctx, q, by, filters)
	if err != nil {
		return nil, err
	}
	p := page{chars: a.number("max_chars", defaultChars)}
	shown := 0
	for _, h := range hits[:min(limit, len(hits))] {
		m, err := s.st.Get(ctx, h.ID) // one at a time: each may be large
		if err == nil {
			if !p.found(&m, &h) {
				break
			}
		} else if err != nil && !errors.Is(err, varve.ErrNotFound) && !isOne(err) {
			return nil, err
		}
		shown++
	}
	if order != nil {
		slices.SortStableFunc(p.items, func(a, b item) int { return order.Compare(&a.of, &b.of) })
	}
	if shown < len(hits) {
		p.next = fmt.Sprintf("%s %d", by, offset+shown)
	}
	if p.note(ctx, s, a); p.why != "" {
		notes = append(notes, p.why)
	}
	p.why = strings.Join(notes, "; ")
	return answered(func(w *writer) {
		w.open('{')
		p.write(w)
		w.text("by", by)
		p.writeNext(w)
		w.close('}')
	}), nil
}

// both refuses arguments that only a combined search has, if another search was requested or can is
// false.
func (a args) both(can bool) error {
	for _, name := range []string{"share", "ranks"} {
		switch _, given := a[name]; {
		case !given || name == "ranks" && !a.flag(name):
		case a.text("by") == "words" || a.text("by") == "meaning":
			return fmt.Errorf(`%s: is of a search by "both", not by %q: omit one of them`, name, a.text("by"))
		case !can:
			return fmt.Errorf("%s: is of a search by words and meaning, which needs an embedder, and this server has none: "+
				"omit it", name)
		}
	}
	return nil
}

// order returns the order requested by sort, from the cursor place on; nil if there is no sort.
func (a args) order(place string) (*memstore.Order, error) {
	sort := a.text("sort")
	if sort == "" {
		return nil, nil
	}
	o, err := memstore.ParseOrder(sort, place)
	if err != nil && place != "" {
		if _, serr := memstore.ParseOrder(sort, ""); serr == nil {
			return nil, fmt.Errorf("cursor %q: must be next of the previous page, with the same sort", place)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sort: %w", err)
	}
	return o, nil
}

// maxQuery is the maximum length of a query in bytes.
const maxQuery = 1 << 20

// lastHit is the number of hits after which paging ends.
const lastHit = 100_000

// recallCursor parses a cursor such as "words 20".
func recallCursor(cursor string) (by string, offset int, err error) {
	by, n, ok := strings.Cut(cursor, " ")
	offset, err = strconv.Atoi(n)
	switch {
	case !ok || err != nil || offset < 0 || !slices.Contains(recallBy, by):
		return "", 0, fmt.Errorf("cursor %q: must be next of the previous page", cursor)
	case offset > lastHit:
		return "", 0,
			fmt.Errorf("cursor %q: recall returns at most the first %d; use a more specific query, or list_memories", cursor,
				lastHit)
	}
	return by, offset, nil
}

// recallBy are the values of the argument by.
var recallBy = []string{"both", "meaning", "words"}

// search searches by words and meaning if possible. It searches by words if a search by meaning
// fails or finds nothing, unless by was given. A page of a cursor and a search with min_score stay
// with one kind of search, since scores by words are on another scale.
func (s *server) search(ctx context.Context, q varve.Query, by string,
	filters []varve.Filter) ([]varve.Hit, string, error) {
	if (by == "meaning" || by == "both") && s.o.Embed == nil {
		return nil, "", fmt.Errorf(`by %q needs an embedder, and this server has none: search by "words"`, by)
	}
	if by != "words" && s.o.Embed != nil {
		list, err := s.o.Embed(ctx, []string{q.Text})
		if err == nil && len(list) != 1 {
			err = fmt.Errorf("the embedder returned %d vectors for one text", len(list))
		}
		var hits []varve.Hit
		if err == nil {
			near := q
			if near.Vector, near.Model = list[0], s.o.EmbedModel; by == "meaning" {
				near.Text, near.Share, near.RankFusion = "", 0, false
			}
			hits, err = s.all(ctx, near, filters)
		}
		if by != "" || len(hits) > 0 || ctx.Err() != nil || err == nil && (q.Offset > 0 || q.MinScore > 0) {
			return hits, cmp.Or(by, "both"), err
		}
		if err != nil {
			s.o.Logger.Warn("vector search failed, using word search", "err", err)
		}
	}
	q.Share, q.RankFusion = 0, false
	hits, err := s.all(ctx, q, filters)
	return hits, "words", err
}

// all returns the ids of the hits. Memories that cannot be read do not prevent the others from
// being found.
func (s *server) all(ctx context.Context, q varve.Query, filters []varve.Filter) ([]varve.Hit, error) {
	q.Trim = func(m *varve.Memory) { *m = varve.Memory{ID: m.ID} }
	hits, err := s.st.Search(ctx, q, filters...)
	if err != nil && hits != nil {
		s.o.Logger.Warn("searching", "err", err)
		err = nil
	}
	return hits, err
}

// page is the content of one answer.
type page struct {
	items []item
	chars int // characters left
	next  string
	why   string // reason why there is nothing
}

// item is what an answer shows of a memory, which may be much larger.
type item struct {
	id, text, session, category, key string
	why                              string
	tags                             []string
	cut                              bool
	score                            float64
	of                               varve.Memory // its id, times and quickrecal_score
}

// maxLabels is the maximum total length in bytes of category, key and tags that are shown with a
// memory: the characters of an answer are for texts.
const maxLabels = 4096

func shortLabels(m *varve.Memory) bool {
	n := len(m.Category()) + len(m.Key())
	for _, t := range tagsOf(m) {
		n += len(t)
	}
	return n <= maxLabels && len(tagsOf(m)) <= maxLabels
}

// add adds a memory unless the page is full. The first memory is always added, and cut if it is too
// long.
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
	if shortLabels(m) {
		it.category, it.key, it.tags = m.Category(), m.Key(), tagsOf(m)
	} else {
		it.cut = true
	}
	p.items = append(p.items, it)
	return true
}

// found adds a hit: if a fragment was requested, only the fragment of a longer text.
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
		it.why = why(h.Explanation)
	}
	return true
}

// why returns an explanation in words: each word of the query with its score and the fields that
// have it, the score from the rest of the session, and the similarity of meaning.
func why(e *varve.Explanation) string {
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

func (w *writer) item(it *item) {
	w.next()
	w.open('{')
	w.text("id", it.id)
	w.text("text", it.text)
	if it.cut {
		w.flag("cut", true)
	}
	if it.score != 0 {
		w.number("score", it.score)
	}
	for _, m := range []struct{ name, value string }{{"session", it.session}, {"category", it.category}, {"key", it.key}} {
		if m.value != "" {
			w.text(m.name, m.value)
		}
	}
	if len(it.tags) > 0 {
		w.texts("tags", it.tags)
	}
	if t := it.of.Timestamp; !t.IsZero() && t.Sub(it.of.UpdatedAt).Abs() >= time.Minute {
		w.text("happened", t.Format(time.RFC3339))
	}
	w.text("written", it.of.UpdatedAt.Format(time.RFC3339))
	if t := it.of.ExpiresAt; !t.IsZero() {
		w.text("expires", t.Format(time.RFC3339))
	}
	if it.why != "" {
		w.text("why", it.why)
	}
	w.close('}')
}

// cut returns at most chars characters of a text, and reports whether it left something out.
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

func (s *server) listMemories(ctx context.Context, a args) (*answer, error) {
	filters, err := a.filters(s.o.Clock())
	if err != nil {
		return nil, err
	}
	if a.flag("sessions") {
		if name := a.chooses(); name != "" {
			return nil,
				fmt.Errorf("%s: chooses or orders memories, and sessions lists all sessions by their ids → omit one of them", name)
		}
		return s.listSessions(ctx, a.text("cursor"), a.number("limit", 50))
	}
	order, err := a.order(a.text("cursor"))
	if err != nil {
		return nil, err
	}
	if order != nil {
		filters = append(filters, varve.Sorted(order))
	} else if cursor := a.text("cursor"); cursor != "" {
		last, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil || !utf8.Valid(last) {
			return nil, fmt.Errorf("cursor %q: must be next of the previous page", cursor)
		}
		if of, _, ok := strings.Cut(string(last), " "); ok {
			if _, err := memstore.ParseOrder(of, cursor); err == nil {
				return nil, fmt.Errorf("cursor %q: must be next of the previous page, with the same sort: %s", cursor, of)
			}
		}
		filters = append(filters, varve.After(string(last)))
	}
	limit := a.number("limit", 50)
	p, place := page{chars: a.number("max_chars", defaultChars)}, ""
	for m, err := range s.st.Memories(ctx, filters...) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			if !isOne(err) {
				return nil, err
			}
			s.o.Logger.Warn("listing", "err", err)
			continue
		}
		if len(p.items) == limit || !p.add(&m, 0) {
			if p.next = place; order == nil {
				p.next = base64.RawURLEncoding.EncodeToString([]byte(p.items[len(p.items)-1].id))
			}
			break
		}
		if order != nil {
			place = order.Place()
		}
	}
	p.note(ctx, s, a)
	return answered(func(w *writer) {
		w.open('{')
		p.write(w)
		p.writeNext(w)
		w.close('}')
	}), nil
}
