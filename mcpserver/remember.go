package mcpserver

import (
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

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/graph"
	"github.com/varve-db/varve/internal/jsondoc"
)

// keyed returns the id of a memory with a key, so that it is found and replaced with one look-up:
// note-, the key as far as a file name may contain it, "-", and 16 hex digits of the sha256 of
// session, category and key, each preceded by its length as 8 bytes, little-endian. Earlier
// versions made an id of note- and 32 hex digits, which gave meaningless file names: old is that
// id; an existing memory with it is replaced.
func keyed(session, category, key string) (id, old string) {
	h := sha256.New()
	for _, part := range []string{session, category, key} {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		io.WriteString(h, part)
	}
	sum := hex.EncodeToString(h.Sum(nil)[:16])
	return "note-" + jsondoc.Slug(key, maxKeySlug) + "-" + sum[:16], "note-" + sum
}

// maxKeySlug is the maximum number of bytes of a key in an id, so that the id stays a plain file
// name.
const maxKeySlug = 60

func (s *server) remember(ctx context.Context, a args) (*answer, error) {
	text := a.text("text")
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("text is empty: nothing to remember")
	}
	now := s.o.Clock()
	m := varve.Memory{Content: text, Timestamp: now, Metadata: map[string]any{}}
	for name, member := range map[string]string{"session": "session_id", "category": "category", "key": "key"} {
		if v := a.text(name); v != "" {
			m.Metadata[member] = v
		}
	}
	if tags := a.texts("tags"); len(tags) > 0 {
		m.Metadata["tags"] = anys(tags)
	}
	if ttl := a.number("ttl", 0); ttl > 0 {
		m.ExpiresAt = now.Add(time.Duration(ttl) * time.Second)
	}
	replaced := false
	var err error
	if a.text("key") == "" {
		m, err = s.st.Put(ctx, m)
	} else {
		var old string
		m.ID, old = keyed(a.text("session"), a.text("category"), a.text("key"))
		m.ID, replaced, err = s.replace(ctx, m, old)
	}
	if err != nil {
		return nil, err
	}
	near, err := s.nearTo(ctx, m.ID, text)
	if err != nil && ctx.Err() == nil {
		s.o.Logger.Warn("looking for near-duplicates", "err", err) // the memory is stored nevertheless
	}
	return answered(func(w *writer) {
		w.open('{')
		w.text("id", m.ID)
		w.flag("replaced", replaced)
		w.member("near")
		list(w, near, (*writer).near)
		w.close('}')
	}), nil
}

// replace puts a memory under its key, and returns its id: m.ID, or earlier if only that memory
// exists. Members of metadata that the caller does not set are kept.
func (s *server) replace(ctx context.Context, m varve.Memory, earlier string) (id string, replaced bool, err error) {
	l := s.loading(ctx)
	defer l.done()
	err = s.st.Transact(ctx, func(tx *varve.Tx) error {
		l.bytes = 0
		old, err := l.get(tx, m.ID)
		if errors.Is(err, varve.ErrNotFound) {
			if was, werr := l.get(tx, earlier); !errors.Is(werr, varve.ErrNotFound) {
				old, err = was, werr
			}
		}
		id = m.ID
		if replaced = err == nil; !replaced {
			if !errors.Is(err, varve.ErrNotFound) {
				return err
			}
			_, err = tx.Put(m)
			return err
		}
		id = old.ID
		old.Content, old.Timestamp, old.ExpiresAt = m.Content, m.Timestamp, m.ExpiresAt
		if old.Metadata == nil {
			old.Metadata = map[string]any{}
		}
		delete(old.Metadata, "tags")
		for name, v := range m.Metadata {
			old.Metadata[name] = v
		}
		_, err = tx.Put(old)
		return err
	})
	return id, replaced, err
}

func anys(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

// near is a memory with nearly the same text as another.
type near struct {
	id, text   string
	similarity float64
}

func (w *writer) near(n *near) {
	w.next()
	w.open('{')
	w.text("id", n.id)
	w.text("text", n.text)
	w.number("similarity", n.similarity)
	w.close('}')
}

// Limits for near-duplicates: the cosine of two embeddings, or the share of three-letter sequences
// that two texts have in common.
const (
	nearCosine = 0.92
	nearPieces = 0.6
	nearMost   = 5
	nearChars  = 500      // characters of each that are shown
	nearLooks  = 64 << 10 // characters of each that are compared
	nearWords  = 24       // words by which they are found
)

// beginning reduces a memory to the part that is compared.
func beginning(m *varve.Memory) {
	text, isCut := cut(m.Content, nearLooks)
	if isCut {
		text = strings.Clone(text)
	}
	*m = varve.Memory{ID: m.ID, Content: text}
}

// nearTo returns near-duplicates of a memory: by its embedding if it has one, otherwise among the
// memories that share the most words with it.
func (s *server) nearTo(ctx context.Context, id, text string) ([]near, error) {
	var all []near
	add := func(h varve.Hit, similarity float64) {
		if h.ID != id && !graph.IsID(h.ID) && len(all) < nearMost {
			short, _ := cut(h.Memory.Content, nearChars)
			all = append(all, near{h.ID, short, similarity})
		}
	}
	if s.o.Embed != nil {
		hits, err := s.st.Search(ctx, varve.Query{Like: id, Limit: 4 * nearMost, MinScore: nearCosine, Trim: beginning})
		if err == nil {
			for _, h := range hits {
				add(h, h.Score)
			}
			return all, nil
		}
	}
	text, _ = cut(text, nearLooks)
	hits, err := s.st.Search(ctx, varve.Query{Text: text, MaxRareTerms: nearWords, Limit: 4 * nearMost, Trim: beginning})
	if err != nil && hits == nil {
		return nil, err
	}
	own := threes(text)
	for _, h := range hits {
		if share := inCommon(own, threes(h.Memory.Content)); share >= nearPieces {
			add(h, share)
		}
	}
	slices.SortStableFunc(all, func(x, y near) int { return -compareFloat(x.similarity, y.similarity) })
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

// threes returns all sequences of three characters in a text, ignoring case and spacing.
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

func (s *server) forget(ctx context.Context, a args) (*answer, error) {
	ids, session := a.texts("ids"), a.text("session")
	if len(ids) > maxForget {
		return nil, fmt.Errorf("ids: %d exceed the limit of %d; use several calls", len(ids), maxForget)
	}
	for _, id := range ids {
		if graph.IsID(id) {
			return nil,
				fmt.Errorf("%q belongs to the knowledge graph: use delete_entities or delete_relations; nothing was forgotten", id)
		}
		if id == takenID {
			return nil,
				fmt.Errorf("%q records the import of the old file, so that memories deleted since are not restored; "+
					"nothing was forgotten", id)
		}
	}
	var forgotten, missing []string
	err := s.st.Transact(ctx, func(tx *varve.Tx) error {
		forgotten, missing = nil, nil
		for _, id := range ids {
			if slices.Contains(forgotten, id) || slices.Contains(missing, id) {
				continue
			}
			m, err := tx.Get(id)
			if errors.Is(err, varve.ErrNotFound) || errors.Is(err, varve.ErrInvalid) && id == "" {
				missing = append(missing, id)
				continue
			}
			if err == nil && session != "" && m.Session() != session {
				err = fmt.Errorf("%q belongs to another session than %q; nothing was forgotten", id, session)
			}
			if err == nil {
				err = tx.Delete(id)
			}
			if err != nil {
				return err
			}
			forgotten = append(forgotten, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answered(func(w *writer) {
		w.open('{')
		w.texts("forgotten", forgotten)
		w.texts("missing", missing)
		w.close('}')
	}), nil
}
