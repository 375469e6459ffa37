package page

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/queryargs"
	"github.com/varve-db/varve/memstore"
)

// row is the template data of one row of a list: a memory, or a hit in a note.
type row struct {
	ID       string
	Text     []piece
	Session  string
	Tags     []string
	Category string
	Memory   *varve.Memory
	Writer   varve.Writer
	Score    float64
	Why      []string // reasons why the search has found the memory
	Note     *placeInNote
}

// placeInNote is the part of a note that is a hit of a search.
type placeInNote struct {
	Path     string
	Headings string // headings above the place, from the outermost to the nearest
	Lines    string // line numbers, such as 3-9
	Updated  time.Time
}

// piece is a part of a text. Mark is true if the part is a word of the query.
type piece struct {
	Text string
	Mark bool
}

// listed is the template data of a list of memories.
type listed struct {
	Query   string
	Filters []chosen
	Rows    []row
	Search  bool
	Export  string // parameters for exporting the list
	By      string // "words", "meaning", "words and meaning" or "similarity"; "": the list has no search
	Notes   []string
	Unread  []string // errors of memories that cannot be read
	Next    string   // link to the next page of the list
	From    int      // number of rows on the pages before this one
	Total   int64    // number of all memories in the store
	Like    string
	Empty   string // reason why the list is empty, with advice
}

// chosen is a filter that is applied to a list. Without is a link to the list without this filter.
type chosen struct{ Name, Value, Without string }

// filterNames has the names of the URL parameters that filter a list, in the order in which the page shows the filters.
var filterNames = []string{"session", "tag", "category", "by", "since", "until", "where"}

// listParams has the names of all URL parameters of a list, except those that select a page of the list.
var listParams = append([]string{"q", "typed", "kind", "mode", "sort", "like"}, filterNames...)

// listLink returns a link to the list of this request. pairs are names and values of parameters that replace those of
// the request.
func (r *request) listLink(pairs ...string) string { return link("list", r.listParams(pairs...)...) }

func (r *request) listParams(pairs ...string) (all []string) {
	for _, name := range listParams {
		all = append(all, name, r.get(name))
	}
	return withoutEmpty(append(all, pairs...))
}

// withoutEmpty filters pairs of names and values. If a name occurs several times, it keeps only the last value. It then
// leaves out pairs whose value is empty.
func withoutEmpty(pairs []string) (kept []string) {
	for i := 0; i < len(pairs); i += 2 {
		last := true
		for j := i + 2; j < len(pairs); j += 2 {
			last = last && pairs[j] != pairs[i]
		}
		if last && pairs[i+1] != "" {
			kept = append(kept, pairs[i], pairs[i+1])
		}
	}
	return kept
}

// filters returns the filters that the parameters of a request specify.
func (p *Page) filters(r *request) ([]varve.Filter, error) {
	all, err := queryargs.ByTime(p.o.Clock(), func(name string) (string, bool) {
		value := strings.TrimSpace(r.get(name))
		return value, value != ""
	}, func(name string) string { return name })
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, err.Error(), "for example 2026-01-31, yesterday, 7d or last week"}
	}
	for _, f := range []struct {
		name string
		of   func(string) varve.Filter
	}{
		{"session", func(s string) varve.Filter { return varve.InSession(s) }}, {"tag", varve.WithTag},
		{"category", varve.InCategory}, {"by", varve.WrittenBy},
	} {
		if value := r.get(f.name); value != "" {
			all = append(all, f.of(value))
		}
	}
	if condition := strings.TrimSpace(r.get("where")); condition != "" {
		f, err := varve.Where(condition)
		if err != nil {
			return nil, &refusal{http.StatusBadRequest, err.Error(),
				"for example source=desk, priority>=3, path^=docs/, source or !source"}
		}
		all = append(all, f)
	}
	return all, nil
}

// list shows a list of memories: all of them, those that pass the filters, or the hits of a search.
func (p *Page) list(r *request) (*view, error) {
	filters, err := p.filters(r)
	if err != nil {
		return nil, err
	}
	l := &listed{Query: r.get("q"), Total: r.st.Admin().Stats().Memories, Like: r.get("like")}
	for _, name := range filterNames {
		if value := r.get(name); value != "" {
			l.Filters = append(l.Filters, chosen{name, value, r.listLink(name, "")})
		}
	}
	l.Search, l.Export = searches(r), params(r.listParams("of", "list")...)
	switch kind := r.get("kind"); {
	case kind == "assembly":
		return p.assemblies(r, l.Filters, filters)
	case kind == "note" && !l.Search:
		return p.folder(r, l.Filters)
	}
	title := "Memories"
	if l.Search {
		title = "Search"
		err = p.found(r, l, filters)
	} else {
		err = p.all(r, l, filters)
	}
	if err != nil {
		return nil, err
	}
	if len(l.Rows) == 0 {
		l.Empty = p.emptyReason(r, l, filters)
	}
	return &view{template: "list", title: title, data: l}, nil
}

// emptyReason returns the reason why a list is empty, with advice.
func (p *Page) emptyReason(r *request, l *listed, filters []varve.Filter) string {
	switch {
	case l.Total == 0 && !l.Search:
		return "Nothing is stored yet. Let an agent remember something (memctl mcp), or write a memory with New memory above."
	case len(filters) > 0:
		if condition := r.get("where"); condition != "" {
			if why := queryargs.Nothing(r.ctx, r.st, []string{condition}, filters[:len(filters)-1]...); why != "" {
				return "No memory passes the filters: " + why
			}
		}
		return "No memory passes the filters: remove one of the filters."
	case l.Like != "":
		return "No similar memory was found: either this memory or every other memory has no embedding. " +
			"memctl reindex --missing adds the missing embeddings."
	}
	what := map[string]string{"memory": "No memory has", "note": "No note has"}[r.get("kind")]
	if what == "" {
		what = "No memory and no note has"
	}
	return what + " these words: use fewer or other words, or the beginning of a word, such as rom*."
}

// newestFirst is the order of a list for which no order is requested.
const newestFirst = "-updated"

// all adds one page of the memories that pass the filters to the list l, in the requested order. It is used for a list
// without a search.
func (p *Page) all(r *request, l *listed, filters []varve.Filter) error {
	key := r.get("sort")
	if key == "" {
		key = newestFirst
	}
	order, err := memstore.ParseOrder(key, r.get("place"))
	if err != nil {
		return &refusal{http.StatusBadRequest, err.Error(), "choose another order, or open the list again"}
	}
	l.From = r.number("from")
	for m, err := range r.st.Memories(r.ctx, append(filters, varve.Sorted(order))...) {
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if err != nil {
			if fatal(err) {
				return err
			}
			l.Unread = append(l.Unread, err.Error())
			if len(l.Unread) >= MostRows {
				break
			}
			continue
		}
		if l.Rows = append(l.Rows, p.row(r.st, &m)); len(l.Rows) == MostRows {
			l.Next = r.listLink("place", order.Place(), "from", strconv.Itoa(l.From+len(l.Rows)))
			break
		}
	}
	return nil
}

// fatal reports whether an error concerns the whole store and not only one document.
func fatal(err error) bool {
	return errors.Is(err, varve.ErrReplaced) || errors.Is(err, varve.ErrMoved) || errors.Is(err, varve.ErrClosed)
}

func (r *request) number(name string) int {
	n, err := strconv.Atoi(r.get(name))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// listText is the number of bytes of a memory's content that a list shows. heldMost is the maximum number of bytes of
// documents that a search holds in memory. mostTyped is the maximum number of hits that are shown while the person
// types the query. It is about two screens: a browser takes longer to show 200 rows than the store takes to find them.
const (
	listText  = 280
	heldMost  = 8 << 20
	mostTyped = 30
)

func (p *Page) row(st *varve.Store, m *varve.Memory) row {
	x := row{ID: m.ID, Text: []piece{{Text: shortened(visible(human.Head(m.Content, 4*listText)), listText)}},
		Session: m.Session(), Tags: tagsOf(m), Category: m.Category(), Writer: st.Admin().WriterOf(m.By, m.Version)}
	kept := *m
	kept.Content, kept.Embedding, kept.HyperbolicEmbedding, kept.Metadata = "", nil, nil, nil
	x.Memory = &kept
	return x
}

// tagsOf returns the tags in a memory's metadata, at most MostRows. The value of "tags" may be a list or a single
// string.
func tagsOf(m *varve.Memory) (tags []string) {
	switch list := m.Metadata["tags"].(type) {
	case string:
		return []string{list}
	case []any:
		for _, t := range list {
			if s, ok := t.(string); ok && len(tags) < MostRows {
				tags = append(tags, s)
			}
		}
	}
	return tags
}

// typing reports whether the person is still typing the query.
func (r *request) typing() bool { return r.get("typed") != "" }

// searches reports whether a request for a list is a search: it has a query, or the id of a memory to which the hits
// are similar.
func searches(r *request) bool { return strings.TrimSpace(r.get("q")) != "" || r.get("like") != "" }

// query returns the search that the parameters of a request specify. kind names the search that q performs: "words",
// "meaning", "words and meaning" or "similarity". If the request asked for another search than this one, notes has the
// reason for the difference.
func (p *Page) query(r *request) (q varve.Query, kind string, notes []string) {
	if q.Like = r.get("like"); q.Like != "" {
		return q, "similarity", nil
	}
	unfinished := r.typing()
	q.Text, q.Kinds = typed(r.get("q"), unfinished), kinds(r.get("kind"))
	mode := r.get("mode")
	switch {
	case unfinished: // no request to the embedding service for each letter that is typed
	case p.o.Embed != nil && mode != "words":
		list, err := p.o.Embed(r.ctx, []string{r.get("q")})
		if err == nil && len(list) != 1 {
			err = fmt.Errorf("%w: the embedder returned %d vectors for 1 text", varve.ErrInvalid, len(list))
		}
		if err != nil {
			return q, "words", []string{byWordsOnly + err.Error()}
		}
		q.Vector, q.Model = list[0], p.o.EmbedModel
		if mode == "meaning" {
			q.Text = ""
			return q, "meaning", nil
		}
		return q, "words and meaning", nil
	case mode == "meaning" || mode == "both":
		return q, "words", []string{"searched by words only: there is no embedding service (VARVE_EMBED_URL)"}
	}
	return q, "words", nil
}

const byWordsOnly = "searched by words only, since searching by meaning failed: "

// found adds the hits of a search to a list.
func (p *Page) found(r *request, l *listed, filters []varve.Filter) error {
	l.From = r.number("from")
	q, by, notes := p.query(r)
	l.By, l.Notes = by, notes
	most := MostRows
	if r.typing() && l.From == 0 {
		most = mostTyped
	}
	q.Limit, q.Offset, q.Explain, q.Held = most+1, l.From, true, heldMost
	if q.Text != "" {
		q.Fragment, q.Note = listText, func(note string) { l.Notes = append(l.Notes, note) }
	}
	hits, err := r.st.Search(r.ctx, q, filters...)
	if err != nil && hits == nil && q.Vector != nil && q.Text != "" {
		l.Notes, l.By = append(l.Notes, byWordsOnly+err.Error()), "words"
		q.Vector, q.Model = nil, ""
		hits, err = r.st.Search(r.ctx, q, filters...)
	}
	if errors.Is(err, varve.ErrInvalid) && hits == nil && !fatal(err) { // a query that is only begun, for example
		l.Notes = append(l.Notes, err.Error())
		return nil
	}
	if err != nil && hits == nil {
		return err
	}
	if err != nil {
		l.Unread = append(l.Unread, err.Error())
	}
	for i := range hits[:min(len(hits), most)] {
		h := &hits[i]
		if h.Note != nil {
			l.Rows = append(l.Rows, noteRow(h, l.Query))
			continue
		}
		if h.Trimmed {
			whole, err := r.st.Get(r.ctx, h.ID)
			if errors.Is(err, varve.ErrNotFound) {
				continue // deleted meanwhile
			}
			if err != nil {
				l.Unread = append(l.Unread, err.Error())
				continue
			}
			h.Memory = whole
		}
		x := p.row(r.st, &h.Memory)
		x.Score, x.Why = h.Score, scoreReasons(h, l.Query)
		if h.Fragment != nil && len(h.Fragment.Marks) > 0 {
			x.Text = marked(h.Fragment)
		}
		l.Rows = append(l.Rows, x)
	}
	if len(hits) > most {
		l.Next = r.listLink("from", strconv.Itoa(l.From+most))
	}
	return nil
}

// kinds returns the kinds of documents to search. The parameter kind is the one from the URL: "memory" and "note"
// select that kind; for any other value, kinds returns nil, which means all kinds.
func kinds(kind string) []varve.Kind {
	if kind == string(varve.KindMemory) || kind == string(varve.KindNote) {
		return []varve.Kind{varve.Kind(kind)}
	}
	return nil
}

// noteRow returns the row of a list for a hit in a note.
func noteRow(h *varve.Hit, query string) row {
	n := h.Note
	at := &placeInNote{Path: n.Path, Lines: strconv.Itoa(n.From), Updated: n.UpdatedAt}
	if n.To > n.From {
		at.Lines += "-" + strconv.Itoa(n.To)
	}
	at.Headings = shortened(visible(strings.Join(n.Headings, " › ")), listText)
	x := row{ID: n.Path, Note: at, Score: h.Score, Why: scoreReasons(h, query),
		Text: []piece{{Text: shortened(visible(human.Head(n.Text, 4*listText)), listText)}}}
	if h.Fragment != nil && len(h.Fragment.Marks) > 0 {
		x.Text = marked(h.Fragment)
	}
	return x
}

// typed returns the text of the query for a search. If unfinished is set, the person is still typing the last word, and
// the query also finds words that begin with the typed letters.
func typed(text string, unfinished bool) string {
	last := text[strings.LastIndexFunc(text, unicode.IsSpace)+1:]
	if !unfinished || len(last) < 2 ||
		strings.ContainsFunc(last, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) ||
		strings.Count(text, `"`)%2 != 0 {
		return text
	}
	return text + " " + last + "*"
}

// marked splits the text fragment of a hit into pieces. The words of the query are marked pieces.
func marked(f *varve.Fragment) (pieces []piece) {
	at := 0
	add := func(to int, mark bool) {
		if to > at && to <= len(f.Text) {
			pieces = append(pieces, piece{visible(f.Text[at:to]), mark})
			at = to
		}
	}
	if f.From > 0 {
		pieces = append(pieces, piece{Text: "… "})
	}
	for _, m := range f.Marks {
		add(m[0], false)
		add(m[1], true)
	}
	add(len(f.Text), false)
	if f.Cut {
		pieces = append(pieces, piece{Text: " …"})
	}
	return pieces
}

// typedWord returns the word of the query that has the given stem, spelled as the person typed it. If the query has no
// such word, typedWord returns the stem.
func typedWord(query, stem string) string {
	if len(stem) < 4 {
		return stem
	}
	for _, word := range strings.FieldsFunc(query, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if strings.HasPrefix(strings.ToLower(word), stem[:len(stem)-1]) && !strings.HasSuffix(stem, "*") {
			return word
		}
	}
	return stem
}

// scoreReasons returns the parts that make up a hit's score, each as text.
func scoreReasons(h *varve.Hit, query string) (reasons []string) {
	e := h.Explanation
	if e == nil {
		return nil
	}
	for _, w := range e.Words {
		reason := fmt.Sprintf("“%s” %.2f", visible(typedWord(query, w.Word)), w.Score)
		switch {
		case w.Near >= 0.995:
			reason += " from neighbouring memories in the session"
		case len(w.Fields) > 0:
			reason += " in " + strings.Join(w.Fields, ", ")
		}
		reasons = append(reasons, reason)
	}
	if e.Session > 0 {
		reasons = append(reasons, fmt.Sprintf("other memories of its session %.2f", e.Session))
	}
	if e.Similarity != 0 {
		reasons = append(reasons, fmt.Sprintf("similar meaning %.2f", e.Similarity))
	}
	return reasons
}

// choices returns the values that the page suggests to a person who fills in the filters of a list: ids of sessions
// and names of writers, at most 4*MostRows of each.
func (p *Page) choices(r *request) (*view, error) {
	var d struct{ Sessions, Writers []string }
	for s, err := range r.st.Sessions().All(r.ctx) {
		if err != nil || len(d.Sessions) >= 4*MostRows {
			break
		}
		d.Sessions = append(d.Sessions, s.ID)
	}
	list, _ := r.st.Admin().Writers(r.ctx) // on an error, no writers are suggested
	seen := map[string]bool{}
	for i := range list {
		if name := list[i].Name(); !seen[name] && name != "" && len(d.Writers) < 4*MostRows {
			seen[name] = true
			d.Writers = append(d.Writers, name)
		}
	}
	return &view{template: "choices", data: d}, nil
}
