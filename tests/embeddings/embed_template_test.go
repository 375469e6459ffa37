package embeddings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// notes is an embedder that records the texts that it was asked for.
type notes struct {
	mu    sync.Mutex
	texts []string
	down  bool
}

func (n *notes) embed(_ context.Context, texts []string) ([][]float32, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, errors.New("down")
	}
	n.texts = append(n.texts, texts...)
	var list [][]float32
	for _, text := range texts {
		list = append(list, textVector(text))
	}
	return list, nil
}

func textVector(text string) []float32 {
	v := []float32{1, 0, 0}
	for i, c := range []byte(text) {
		v[1+i%2] += float32(c) * float32(i+1)
	}
	return v
}

func (n *notes) asked(t *testing.T, want ...string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(n.texts, want) {
		t.Errorf("asked %q, want %q", n.texts, want)
	}
	n.texts = nil
}

const turnsTemplate = "{previous} {speaker|author|name}: {content} {caption}"

var firstTurn = time.Date(2024, 5, 6, 8, 0, 0, 0, time.UTC)

func turn(id string, minute int, speaker, content string) varve.Memory {
	return varve.Memory{ID: id, Content: content, Timestamp: firstTurn.Add(time.Duration(minute) * time.Minute),
		Metadata: map[string]any{"session_id": "s", "speaker": speaker}}
}

// embeddedAs fails the test unless each memory has the vector of a text.
func embeddedAs(t *testing.T, st *varve.Store, want map[string]string) {
	t.Helper()
	for id, text := range want {
		m, err := st.Get(context.Background(), id)
		if err != nil || !slices.Equal(m.Embedding, textVector(text)) {
			t.Errorf("%s does not have the vector of %q: %v, %v", id, text, m.Embedding, err)
		}
	}
}

func withEmbedder(n *notes) *varve.Options {
	return &varve.Options{NoBackground: true, Embed: n.embed, EmbedModel: "m"}
}

// TestTurnsAreEmbedded: a store whose first vectors are of turns embeds the previous turn with each one,
// the speaker and the caption; the previous turn is searched for among those that are written together,
// and those that are stored.
func TestTurnsAreEmbedded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := &notes{}
	dir := t.TempDir()
	st, other := fixture.Open(t, dir, withEmbedder(n)), fixture.Open(t, dir, withEmbedder(n))
	shown := turn("3", 3, "Anna", "At last.")
	shown.Metadata["caption"] = "a lake"
	b := new(varve.Batch)
	b.Put(shown)
	b.Put(turn("1", 1, "Ben", "Are you there?"))
	b.Put(turn("2", 2, "Anna", "Yes."))
	b.Put(varve.Memory{ID: "note", Content: "milk and bread"})
	if err := st.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	n.asked(t, "Yes. Anna: At last. a lake", "Ben: Are you there?", "Are you there? Anna: Yes.", "milk and bread")
	if is := st.Admin().Stats().Model; is != "m as "+turnsTemplate {
		t.Error(is)
	}
	for _, flushed := range []bool{false, true} {
		st := st
		if flushed {
			st = other
			if err := other.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := st.Put(ctx, turn("5", 5, "Ben", fmt.Sprint("Flushed ", flushed))); err != nil {
			t.Fatal(err)
		}
		n.asked(t, fmt.Sprintf("At last. Ben: Flushed %v", flushed))
	}
	other.Delete(ctx, "3")
	later := turn("6", 5, "Anna", "So late?") // at the same time, the id decides
	if _, err := other.Put(ctx, later); err != nil {
		t.Fatal(err)
	}
	n.asked(t, "Flushed true Anna: So late?")
	now := turn("", 0, "Ben", "Now.")
	now.Timestamp = time.Time{}
	if _, err := other.Put(ctx, now); err != nil {
		t.Fatal(err)
	}
	n.asked(t, "So late? Ben: Now.")
	b = new(varve.Batch)
	b.Put(turn("7", 7, "Ben", "Still here."))
	b.Put(turn("8", 8, "Anna", "Me too."))
	b.Put(turn("5", 9, "Ben", "Moved.")) // from where it was before
	b.Delete("6")
	if err := other.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	n.asked(t, "Yes. Ben: Still here.", "Still here. Anna: Me too.", "Me too. Ben: Moved.")
	// Queries are embedded as they are, and name the model alone.
	if hits, err := st.Search(ctx,
		varve.Query{Vector: textVector("milk and bread"), Model: "m", Limit: 1}); err != nil || len(hits) != 1 ||
		hits[0].ID != "note" {
		t.Error(hits, err)
	}
	if _, err := st.Search(ctx, varve.Query{Vector: textVector("x"), Model: "other"}); !errors.Is(err, varve.ErrModel) {
		t.Error(err)
	}
	if h := st.Health(ctx); !h.OK || h.Pending != 0 {
		t.Errorf("%+v", h)
	}
}

// TestPreviousArrivesLater: a vector is made from the memory before its own at that time. A memory that
// comes between them later, changes or is deleted does not change it; the memory's own words, names and
// caption do, and a re-embedding makes all vectors from the present memories.
func TestPreviousArrivesLater(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := &notes{}
	st := fixture.Open(t, t.TempDir(), withEmbedder(n))
	put := func(m varve.Memory) {
		t.Helper()
		if _, err := st.Put(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	put(turn("2", 2, "Anna", "Yes."))
	n.asked(t, "Anna: Yes.")
	put(turn("1", 1, "Ben", "Are you there?"))
	n.asked(t, "Ben: Are you there?")
	put(turn("2", 2, "Anna", "Yes.")) // the same once more
	m, err := st.Get(ctx, "2")
	if err != nil {
		t.Fatal(err)
	}
	m.Metadata["mood"] = "tired"
	put(m)
	n.asked(t)
	embeddedAs(t, st, map[string]string{"2": "Anna: Yes."})
	if m, err = st.Get(ctx, "2"); err != nil {
		t.Fatal(err)
	}
	m.Metadata["caption"] = "a door"
	put(m)
	n.asked(t, "Are you there? Anna: Yes. a door")
	put(turn("1", 1, "Ben", "Where are you?"))
	n.asked(t, "Ben: Where are you?")
	embeddedAs(t, st, map[string]string{"2": "Are you there? Anna: Yes. a door"})
	if r, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil || r.Written != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	embeddedAs(t, st, map[string]string{"1": "Ben: Where are you?", "2": "Where are you? Anna: Yes. a door"})
}

// TestTemplateIsChanged: an older store, whose model has only a name, continues with the contents alone
// and is not embedded again; a re-embedding uses a new template, and until then, also while it runs, the
// present one is used.
func TestTemplateIsChanged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := &notes{}
	dir := t.TempDir()
	st := fixture.Open(t, dir, withEmbedder(n))
	if _, err := st.Put(ctx, varve.Memory{ID: "0", Content: "a note"}); err != nil { // in no session: the content alone
		t.Fatal(err)
	}
	for i, text := range []string{"Are you there?", "Yes."} {
		if _, err := st.Put(ctx, turn(fmt.Sprint(i+1), i+1, "Ben", text)); err != nil {
			t.Fatal(err)
		}
	}
	n.asked(t, "a note", "Are you there?", "Yes.")
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = fixture.Open(t, dir, withEmbedder(n))
	if _, err := st.Vectors().EmbedPending(ctx); err != nil {
		t.Fatal(err)
	}
	set := func(template string) error {
		return st.Admin().UpdateConfig(ctx,
			func(c *varve.Config) error { c.Vectors = &varve.VectorConfig{Template: template}; return nil })
	}
	for _, bad := range []string{"turn", "{previous}", "{content} {", strings.Repeat("x", 300) + "{content}"} {
		var field *varve.FieldError
		if err := set(bad); !errors.As(err, &field) || !strings.Contains(err.Error(), "config.json vectors") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := set("turns"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(ctx, turn("3", 3, "Ben", "Good.")); err != nil {
		t.Fatal(err)
	}
	n.asked(t, "Good.")
	other := fixture.Open(t, dir, withEmbedder(n))
	meanwhile := false
	_, err := st.Vectors().Reembed(ctx, varve.ReembedOptions{Progress: func(r varve.ReembedReport) {
		if r.Computed == 0 || r.Written > 0 || meanwhile {
			return
		}
		meanwhile = true
		if s := other.Admin().Stats(); s.Model != "m" || s.NextModel != "m as "+turnsTemplate {
			t.Errorf("%+v", s)
		}
		for _, by := range []*varve.Store{st, other} {
			m := turn("4", 4, "Ben", "Who is this?")
			if _, err := by.Put(ctx, m); err != nil {
				t.Error(err)
			}
			embeddedAs(t, by, map[string]string{"4": "Who is this?"})
		}
	}})
	if err != nil || !meanwhile {
		t.Fatal(err)
	}
	for _, by := range []*varve.Store{st, other} {
		embeddedAs(t, by, map[string]string{"0": "a note", "1": "Ben: Are you there?", "2": "Are you there? Ben: Yes.",
			"3": "Yes. Ben: Good.", "4": "Good. Ben: Who is this?"})
		if s := by.Admin().Stats(); s.Model != "m as "+turnsTemplate || s.NextModel != "" || s.Switching {
			t.Errorf("%+v", s)
		}
	}
	n.texts = nil
	if _, err := other.Put(ctx, turn("5", 5, "Ben", "Nobody.")); err != nil {
		t.Fatal(err)
	}
	n.asked(t, "Who is this? Ben: Nobody.")
	// Without the setting the store keeps what it has, also with another model.
	if err := set(""); err != nil {
		t.Fatal(err)
	}
	o := withEmbedder(n)
	o.EmbedModel = "other"
	third := fixture.Open(t, dir, o)
	if _, err := third.Vectors().Reembed(ctx, varve.ReembedOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := third.Admin().Stats(); s.Model != "other as "+turnsTemplate {
		t.Errorf("%+v", s)
	}
	// An embedder without a name cannot be given a template.
	if err := set("turns"); err != nil {
		t.Fatal(err)
	}
	o.EmbedModel = ""
	fourth := fixture.Open(t, dir, o)
	if _, err := fourth.Vectors().Reembed(ctx, varve.ReembedOptions{}); !errors.As(err, new(*varve.FieldError)) {
		t.Error(err)
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity != varve.SeverityInfo {
			t.Error(f, err)
		}
	}
}

// TestTemplateLater: a memory that could not be embedded when it was put gets its vector by the
// template, also if it is among the first vectors of a store.
func TestTemplateLater(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, setting := range []string{"", "content", "q: {content}"} {
		n := &notes{down: true}
		st := fixture.Open(t, t.TempDir(), withEmbedder(n))
		if setting != "" {
			if err := st.Admin().UpdateConfig(ctx,
				func(c *varve.Config) error { c.Vectors = &varve.VectorConfig{Template: setting}; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for i, text := range []string{"Are you there?", "Yes."} {
			if _, err := st.Put(ctx, turn(fmt.Sprint(i+1), i+1, "Ben", text)); err != nil {
				t.Fatal(err)
			}
		}
		n.down = false
		if got, err := st.Vectors().EmbedPending(ctx); err != nil || got != 2 {
			t.Fatal(got, err)
		}
		switch setting {
		case "":
			n.asked(t, "Ben: Are you there?", "Are you there? Ben: Yes.")
		case "content":
			n.asked(t, "Are you there?", "Yes.")
		default:
			n.asked(t, "q: Are you there?", "q: Yes.")
		}
		if n, err := st.Vectors().EmbedPending(ctx); err != nil || n != 0 {
			t.Error(n, err)
		}
	}
}

// TestFirstVectorsAgree: if several processes put the first vectors at once, some of memories in a
// session, one process decides what is embedded, and no vector is made in another way.
func TestFirstVectorsAgree(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for try := range 8 {
		n := &notes{}
		dir := t.TempDir()
		const parties = 4
		var all [parties]*varve.Store
		var together sync.WaitGroup // each has requested vectors before one of them decides
		together.Add(parties)
		for i := range all {
			o, once := withEmbedder(n), sync.Once{}
			o.Embed = func(ctx context.Context, texts []string) ([][]float32, error) {
				once.Do(func() { together.Done(); together.Wait() })
				return n.embed(ctx, texts)
			}
			all[i] = fixture.Open(t, dir, o)
		}
		begin := make(chan struct{})
		var wg sync.WaitGroup
		for i, st := range all {
			wg.Go(func() {
				<-begin
				for k := range 3 {
					m := varve.Memory{ID: fmt.Sprint(i, k), Content: fmt.Sprint("text ", i, k),
						Metadata: map[string]any{"speaker": "Ben"}}
					if i%2 == 0 {
						m.Metadata["session_id"] = m.ID
					}
					if _, err := st.Put(ctx, m); err != nil {
						t.Error(err)
					}
				}
			})
		}
		close(begin)
		wg.Wait()
		if _, err := all[0].Vectors().EmbedPending(ctx); err != nil {
			t.Fatal(err)
		}
		before := ""
		switch is := all[0].Admin().Stats().Model; is {
		case "m":
		case "m as " + turnsTemplate:
			before = "Ben: "
		default:
			t.Fatal(is)
		}
		for m, err := range all[0].Memories(ctx) {
			if err != nil || !slices.Equal(m.Embedding, textVector(before+m.Content)) {
				t.Errorf("try %d: %s does not have the vector of %q: %v", try, m.ID, before+m.Content, err)
			}
		}
	}
}

// TestQueryTemplate: a query is embedded in a text of its own. A change takes effect at once, embeds no
// memory again and keeps the model's name; put memories and like, which compares memories, do not use
// it.
func TestQueryTemplate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var n notes
	st, err := varve.Open(ctx, t.TempDir(), withEmbedder(&n))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	set := func(v *varve.VectorConfig) error {
		return st.Admin().UpdateConfig(ctx, func(c *varve.Config) error { c.Vectors = v; return nil })
	}
	if err := set(&varve.VectorConfig{Template: "d: {content}",
		QueryTemplate: "Task: find\nquery: {query}!"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "text " + id}); err != nil {
			t.Fatal(err)
		}
	}
	n.asked(t, "d: text a", "d: text b")
	texts := []string{"text a", "{query} {content}"}
	list, err := st.Vectors().Embed(ctx, texts)
	if err != nil || len(list) != 2 || texts[0] != "text a" {
		t.Fatal(list, err, texts)
	}
	n.asked(t, "Task: find\nquery: text a!", "Task: find\nquery: {query} {content}!")
	if _, err := st.Search(ctx, varve.Query{Like: "a"}); err != nil {
		t.Fatal(err)
	}
	name := st.Admin().Config().Vectors.Model
	if err := set(&varve.VectorConfig{Model: name, Template: "d: {content}", QueryTemplate: "q {query}"}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Vectors().EmbedPending(ctx); err != nil {
		t.Fatal(err)
	}
	if drift, err := st.Vectors().Drift(ctx); err != nil || !drift.None() || drift.Without != 0 {
		t.Error(drift, err)
	}
	n.asked(t)
	if _, err := st.Vectors().Embed(ctx, []string{"x"}); err != nil {
		t.Fatal(err)
	}
	n.asked(t, "q x")
	embeddedAs(t, st, map[string]string{"a": "d: text a", "b": "d: text b"})
	for _, bad := range []string{"x", "{query}{query}", "{query} {content}", "{query", "\x00{query}", "\xff{query}",
		strings.Repeat("x", 256) + "{query}"} {
		if err := set(&varve.VectorConfig{QueryTemplate: bad}); !errors.Is(err, varve.ErrInvalid) ||
			!strings.Contains(err.Error(), "query_template") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
