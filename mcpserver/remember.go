package mcpserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/project"
)

// keyed returns the id of a memory with a key. The id depends only on the arguments, so that two clients that store
// the same key at once use the same id. The id is "note-", the key as far as a file name may contain it, "-", and 16
// hex digits of a SHA-256. The hash is over session, category and key, and the project if there is one, each preceded
// by its length as 8 bytes, little-endian.
func keyed(project, session, category, key string) string {
	h := sha256.New()
	parts := []string{session, category, key}
	if project != "" {
		parts = append(parts, project)
	}
	for _, part := range parts {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		io.WriteString(h, part)
	}
	return "note-" + jsondoc.Slug(key, maxKeySlug) + "-" + hex.EncodeToString(h.Sum(nil)[:8])
}

// maxKeySlug is the maximum number of bytes of the key in an id, so that the id can be a file name.
const maxKeySlug = 60

// stored is the result of the tool remember.
type stored struct {
	m        varve.Memory
	replaced bool   // a memory with another text had the key, and was replaced
	exists   bool   // a memory with the same text existed
	dropped  int    // number of other memories that had the key and were removed
	was      string // the text that was replaced
	hides    string // id of the memory with the key in the part that all projects share, which the new one hides
}

func (c *memoryCall) remember(ctx context.Context) (*answer, error) {
	text := c.text("text")
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("text is empty: nothing to remember")
	}
	m := varve.Memory{Content: text, Timestamp: c.now, Metadata: map[string]any{}}
	for name, member := range map[string]string{"session": "session_id", "key": "key"} {
		if v := c.text(name); v != "" {
			m.Metadata[member] = v
		}
	}
	if err := c.describe(&m); err != nil {
		return nil, err
	}
	c.view.Place(&m, c.text("scope") == "user")
	var old string
	if typed := c.text("replaces"); typed != "" {
		var err error
		if old, err = c.view.Resolve(ctx, typed, true); err != nil {
			return nil, fmt.Errorf("replaces: %w; nothing was stored", err)
		}
		if ofGraph(old) {
			return nil, fmt.Errorf("replaces: %q belongs to the knowledge graph; nothing was stored", old)
		}
	}
	r, err := c.store(ctx, m, old)
	if err != nil {
		return nil, err
	}
	if key := r.m.Key(); key != "" && c.project.ID != "" && !r.replaced && !r.exists && !c.view.Shared(&r.m) {
		if hidden, err := c.withKey(ctx, r.m.Session(), key, c.view.Shared); err == nil && len(hidden) > 0 {
			r.hides = hidden[0].ID
		}
	}
	near, err := c.nearTo(ctx, r.m.ID, text)
	if err != nil && ctx.Err() == nil {
		// the memory is stored nevertheless
		c.s.o.Logger.Warn("looking for near-duplicates of a memory failed", "err", err)
	}
	near = slices.DeleteFunc(near, func(n neighbour) bool { return n.m.ID == old })
	return c.linesAnswer(c.storedLines(&r, near, old), func(w *writer) {
		w.open('{')
		w.text("id", r.m.ID)
		w.flag("replaced", r.replaced)
		if r.exists {
			w.flag("exists", true)
		}
		w.member("near")
		list(w, near, (*writer).writeNeighbour)
		w.close('}')
	}), nil
}

// storedLines returns the lines of the answer of remember: the stored memory, its near-duplicates (neighbours),
// and the calls with which the model can resolve the near-duplicates.
func (c *memoryCall) storedLines(r *stored, neighbours []neighbour, old string) []string {
	mine := project.Ending(r.m.ID)
	verb := "remembered"
	switch {
	case r.exists:
		verb = "known already, not stored twice:"
	case r.replaced:
		verb = "replaced the memory that had the key:"
	}
	label := ""
	if r.exists {
		label = labelled(&r.m)
	}
	lines := []string{fmt.Sprintf("%s [%s%s]", verb, oneLine(mine), label)}
	if r.was != "" {
		short, isCut := cut(r.was, wasChars)
		if isCut {
			short += " …"
		}
		lines[0] += ", which was: " + oneLine(short)
	}
	if r.dropped > 0 {
		lines[0] += fmt.Sprintf(", and removed %d more with this key", r.dropped)
	}
	if r.hides != "" {
		lines[0] += fmt.Sprintf("; in this project it hides the shared [%s*] with that key",
			oneLine(project.Ending(r.hides)))
	}
	if old != "" {
		lines[0] += fmt.Sprintf(", in the place of [%s]", oneLine(project.Ending(old)))
	}
	for i := range neighbours[:min(len(neighbours), nearShown)] {
		n := &neighbours[i]
		short, isCut := cut(n.m.Content, shownChars)
		if isCut {
			short += " …"
		}
		lines = append(lines, fmt.Sprintf("near [%s%s · %s] %s", oneLine(project.Ending(n.m.ID)), labelled(&n.m),
			age(c.now, n.m.UpdatedAt), oneLine(short)))
	}
	if len(neighbours) > 0 {
		first := oneLine(project.Ending(neighbours[0].m.ID))
		more := ""
		if n := len(neighbours) - nearShown; n > 0 {
			more = fmt.Sprintf("and %d more like it ", n)
		}
		lines = append(lines, fmt.Sprintf(`%s→ if the near one is no longer true: forget {"ids":["%s"]}; if it says the `+
			`same: forget {"ids":["%s"]}, or update {"id":"%s","text":…}`, more, first, mine, first))
	}
	return lines
}

// labelled returns the category and the key of a memory in the form in which an answer shows them after the id.
func labelled(m *varve.Memory) string {
	label := strings.Trim(m.Category()+"/"+m.Key(), "/")
	if label, _ = cut(label, longestProp); label == "" {
		return ""
	}
	return " · " + oneLine(label)
}

// store puts the memory m. If m has a key, it replaces the memories with that key. If m has no key, it is added,
// unless a memory with the same text exists. old, unless it is "", is the id of a memory that store marks as
// superseded by m. The decision depends on all memories of the view, so the transaction runs again if another client
// stores such a memory meanwhile.
func (c *memoryCall) store(ctx context.Context, m varve.Memory, old string) (r stored, err error) {
	key, shared := m.Key(), c.view.Shared(&m)
	mark := appendString(nil, m.Content)
	if key != "" {
		mark = appendString(nil, key)
	}
	l := c.s.loading(ctx)
	defer l.done()
	err = c.view.Transact(ctx, func(tx *project.Tx) error {
		l.bytes, r = 0, stored{m: *m.Clone()}
		if err := tx.AloneAmong(func(_ string, doc []byte) bool {
			return doc == nil || bytes.Contains(doc, mark)
		}); err != nil {
			return err
		}
		if key != "" {
			err = c.storeKeyed(ctx, tx, l, &r, shared)
		} else {
			err = c.storeText(ctx, tx, l, &r)
		}
		if err != nil || old == "" || old == r.m.ID {
			return err
		}
		was, err := l.get(tx, old)
		if err != nil {
			return fmt.Errorf("replaces: %w; nothing was stored", err)
		}
		if was.Metadata == nil {
			was.Metadata = map[string]any{}
		}
		was.Metadata[project.SupersededBy] = r.m.ID
		_, err = tx.Put(was)
		return err
	})
	return r, err
}

// storeKeyed puts a memory in place of the newest one that has the same key, session and part (project or shared),
// even if another program wrote that one. It removes the other memories with the key. Members of the metadata that the
// call does not set are kept.
func (c *memoryCall) storeKeyed(ctx context.Context, tx *project.Tx, l *loading, r *stored, shared bool) error {
	m := &r.m
	having, err := c.withKey(ctx, m.Session(), m.Key(), func(o *varve.Memory) bool { return c.view.Shared(o) == shared })
	if err != nil {
		return err
	}
	part := ""
	if !shared {
		part = c.view.Project()
	}
	id := keyed(part, m.Session(), m.Category(), m.Key())
	for _, other := range having {
		was, err := l.get(tx, other.ID)
		switch {
		case errors.Is(err, varve.ErrNotFound):
			continue
		case err != nil:
			return err
		case was.Key() != m.Key() || was.Session() != m.Session() || c.view.Shared(&was) != shared:
			continue // changed since it was listed
		case r.replaced || r.exists:
			if err := tx.Delete(was.ID); err != nil {
				return err
			}
			r.dropped++
			continue
		}
		if r.exists = was.Content == m.Content; !r.exists {
			r.replaced, r.was = true, was.Content
		}
		was.Content, was.Timestamp, was.ExpiresAt = m.Content, m.Timestamp, m.ExpiresAt
		if _, ok := c.args["importance"]; ok {
			was.QuickRecalScore = m.QuickRecalScore
		}
		keepPin := slices.Contains(tagsOf(&was), pinned) && c.args["pin"] == nil
		delete(was.Metadata, "tags")
		delete(was.Metadata, project.SupersededBy)
		for name, v := range m.Metadata {
			was.Metadata[name] = v
		}
		if keepPin {
			pin(&was, true)
		}
		if r.m, err = tx.Put(was); err != nil {
			return err
		}
		m = &r.m
	}
	if r.replaced || r.exists {
		return nil
	}
	m.ID = id
	r.m, err = tx.Put(*m)
	return err
}

// storeText puts a memory. If a memory with the same text exists in the same session and part, it does not add another
// one, but writes the arguments of the call to the existing memory.
func (c *memoryCall) storeText(ctx context.Context, tx *project.Tx, l *loading, r *stored) error {
	m := &r.m
	id, err := c.findDuplicate(ctx, m)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if id != "" {
		was, err := l.get(tx, id)
		if err == nil && was.Content == m.Content && was.Session() == m.Session() {
			r.exists = true
			before := was.Clone()
			if was.Metadata == nil {
				was.Metadata = map[string]any{}
			}
			delete(was.Metadata, project.SupersededBy) // it is true again
			if err := c.describe(&was); err != nil {
				return err
			}
			if _, ok := c.args["ttl"]; !ok {
				was.ExpiresAt = time.Time{} // the call wants it without end
			}
			if r.m = was; !was.Equal(before) {
				r.m, err = tx.Put(was)
			}
			return err
		}
		if err != nil && !errors.Is(err, varve.ErrNotFound) {
			return err
		}
	}
	r.m, err = tx.Put(*m)
	return err
}

// findDuplicate returns the id of a memory with the same text, session and part (project or shared), or "" if it
// finds none.
func (c *memoryCall) findDuplicate(ctx context.Context, m *varve.Memory) (string, error) {
	text, _ := cut(m.Content, nearLooks)
	if !hasWord(text) {
		return "", nil
	}
	var filters []varve.Filter
	if s := m.Session(); s != "" {
		filters = append(filters, varve.InSession(s))
	}
	q := varve.Query{Text: text, MaxRareTerms: nearWords, Limit: 4 * nearMost, Trim: beginning}
	hits, _, err := c.view.Search(ctx, q, nil, filters...)
	for _, h := range hits {
		if h.Memory.Content != text || ofGraph(h.ID) {
			continue
		}
		was, gerr := c.view.Get(ctx, h.ID)
		if gerr == nil && was.Content == m.Content && was.Session() == m.Session() &&
			c.view.Shared(&was) == c.view.Shared(m) {
			return h.ID, nil
		}
	}
	return "", err
}

// hasWord reports whether a text contains a word that a search can find.
func hasWord(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

func anys(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

// neighbour is a memory whose text is nearly the same as the text of another memory.
type neighbour struct {
	m          varve.Memory
	similarity float64
}

func (w *writer) writeNeighbour(n *neighbour) {
	w.next()
	w.open('{')
	w.text("id", n.m.ID)
	short, _ := cut(n.m.Content, nearChars)
	w.text("text", short)
	if shortLabels(&n.m) {
		for _, l := range []struct{ name, value string }{{"key", n.m.Key()}, {"category", n.m.Category()}} {
			if l.value != "" {
				w.text(l.name, l.value)
			}
		}
	}
	w.text("written", n.m.UpdatedAt.Format(time.RFC3339))
	w.score("similarity", n.similarity)
	w.close('}')
}

// Limits for near-duplicates. Two memories are near-duplicates if the cosine of their embeddings, or the share
// of three-character sequences that their texts have in common, is at least as large.
const (
	nearCosine = 0.92
	nearPieces = 0.6
	nearMost   = 5
	// nearShown is the number of near-duplicates that an answer shows. A series of facts that differ only in a number
	// has many near-duplicates.
	nearShown = 2
	wasChars  = 100      // number of characters of a replaced text that are shown
	nearChars = 500      // number of characters of each near-duplicate that are shown
	nearLooks = 64 << 10 // number of characters of each text that are compared
	nearWords = 24       // number of words by which near-duplicates are searched
)

// beginning shortens a memory to its id and the beginning of its text. This is all that a comparison of texts needs.
func beginning(m *varve.Memory) {
	text, isCut := cut(m.Content, nearLooks)
	if isCut {
		text = strings.Clone(text)
	}
	*m = varve.Memory{ID: m.ID, Content: text}
}

// nearTo returns the near-duplicates of a memory. If the memory has an embedding, it compares embeddings. Otherwise it
// compares texts, among the memories that have the most words in common with the memory.
func (c *memoryCall) nearTo(ctx context.Context, id, text string) ([]neighbour, error) {
	var all []neighbour
	add := func(h varve.Hit, similarity float64) {
		if h.ID == id || graph.IsID(h.ID) || len(all) == nearMost {
			return
		}
		m, err := c.view.Get(ctx, h.ID)
		if by, _ := m.Metadata[project.SupersededBy].(string); err == nil && by == "" {
			m.Content, _ = cut(m.Content, nearChars)
			all = append(all, neighbour{m, similarity})
		}
	}
	if c.s.o.Embed != nil {
		q := varve.Query{Like: id, Limit: 4 * nearMost, MinScore: nearCosine, Trim: beginning}
		hits, _, err := c.view.Search(ctx, q, nil)
		if err == nil {
			for _, h := range hits {
				add(h, h.Score)
			}
			return all, nil
		}
	}
	if text, _ = cut(text, nearLooks); !hasWord(text) {
		return nil, nil
	}
	q := varve.Query{Text: text, MaxRareTerms: nearWords, Limit: 4 * nearMost, Trim: beginning}
	hits, _, err := c.view.Search(ctx, q, nil)
	if err != nil && hits == nil {
		return nil, err
	}
	own := threes(text)
	for _, h := range hits {
		if share := inCommon(own, threes(h.Memory.Content)); share >= nearPieces {
			add(h, share)
		}
	}
	slices.SortStableFunc(all, func(x, y neighbour) int { return -compareFloat(x.similarity, y.similarity) })
	return all, nil
}

func compareFloat(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// threes returns all sequences of three characters in a text, in lower case. Each run of white space counts as one
// space, and a space is added at both ends of the text.
func threes(text string) map[[3]rune]bool {
	set := map[[3]rune]bool{}
	var last [3]rune
	for i, r := range []rune(" " + strings.Join(strings.Fields(lower(text)), " ") + " ") {
		last = [3]rune{last[1], last[2], r}
		if i >= 2 {
			set[last] = true
		}
	}
	return set
}

func inCommon(a, b map[[3]rune]bool) float64 {
	both := 0
	for p := range a {
		if b[p] {
			both++
		}
	}
	if either := len(a) + len(b) - both; either > 0 {
		return float64(both) / float64(either)
	}
	return 0
}
