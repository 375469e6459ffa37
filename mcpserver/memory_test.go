package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/jsondoc"
)

// as decodes an answer's structured content.
func as[T any](t *testing.T, c *client, tool, args string) T {
	t.Helper()
	text, structured, isError := c.call(tool, args)
	if isError {
		t.Fatalf("%s %s: %s", tool, args, text)
	}
	b, err := json.Marshal(structured)
	if err != nil {
		t.Fatal(err)
	}
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

type remembered struct {
	ID       string
	Replaced bool
	Near     []struct {
		ID, Text   string
		Similarity float64
	}
}

type recalled struct {
	Memories []struct {
		ID, Text, Session, Category, Key string
		Tags                             []string
		Cut                              bool
		Score                            float64
		Expires, Happened                string
		Why                              string
	}
	By, Next, Note string
}

func (r *recalled) ids() string {
	var ids []string
	for _, m := range r.Memories {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

// The file of what is remembered under a key can be told by its name, and what an earlier version stored under the
// key is replaced where it is.
func TestKeyIsInTheName(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{})
	c := connect(t, st, Options{}, nil)
	seen := map[string]bool{}
	for args, want := range map[string]string{
		`{"text":"a","key":"Favourite Editor"}`:                    "note-favourite-editor-",
		`{"text":"b","key":"favourite/editor"}`:                    "note-favourite-editor-",
		`{"text":"c","key":"deploy.day","session":"s1"}`:           "note-deploy-day-",
		`{"text":"d","key":"deploy.day","session":"s2"}`:           "note-deploy-day-",
		`{"text":"e","key":"` + strings.Repeat("long ", 50) + `"}`: "note-long-long-long-",
		`{"text":"f","key":"日本"}`:                                  "note-id-",
	} {
		id := as[remembered](t, c, "remember", args).ID
		if name := jsondoc.FileName(id); !strings.HasPrefix(name, want) || strings.Contains(name, "~") || seen[id] {
			t.Errorf("%s: the file is %s", args, name)
		}
		seen[id] = true
	}
	const old = "note-0123456789abcdef0123456789abcdef"
	if _, err := st.Put(t.Context(), varve.Memory{ID: old, Content: "deploys on Sundays", Metadata: map[string]any{"session_id": "s3", "key": "deploy"}}); err != nil {
		t.Fatal(err)
	}
	if earlier := as[remembered](t, c, "remember", `{"text":"deploys at night","session":"s3","key":"deploy"}`); earlier.ID != old || !earlier.Replaced {
		t.Errorf("%+v, want %s", earlier, old)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var now atomic.Int64
	now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	clock := func() time.Time { return time.Unix(0, now.Load()).UTC() }
	st := openStore(t, dir, &varve.Options{Clock: clock})
	c := connect(t, st, Options{Clock: clock}, nil)

	a := as[remembered](t, c, "remember", `{"text":"The user prefers short answers","session":"s1","category":"preference","tags":["style","user"]}`)
	b := as[remembered](t, c, "remember", `{"text":"the user prefers  SHORT answers.","session":"s2"}`)
	if len(a.Near) != 0 || len(b.Near) != 1 || b.Near[0].ID != a.ID || b.Near[0].Similarity < 0.8 || a.Replaced {
		t.Errorf("%+v\n%+v", a, b)
	}
	// A key has one value; what somebody added to the memory stays.
	k := as[remembered](t, c, "remember", `{"text":"deploys on Fridays","session":"s1","key":"deploy","tags":["old"]}`)
	if _, err := st.Update(t.Context(), k.ID, func(m *varve.Memory) error { m.Metadata["mine"] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	again := as[remembered](t, c, "remember", `{"text":"deploys on Mondays","session":"s1","key":"deploy","ttl":60}`)
	elsewhere := as[remembered](t, c, "remember", `{"text":"deploys never","session":"s2","key":"deploy"}`)
	m, err := st.Get(t.Context(), k.ID)
	if again.ID != k.ID || !again.Replaced || elsewhere.ID == k.ID || err != nil || m.Content != "deploys on Mondays" || m.Metadata["mine"] != true || m.Metadata["tags"] != nil {
		t.Errorf("%+v %+v %+v %v", again, elsewhere, m, err)
	}

	r := as[recalled](t, c, "recall", `{"query":"SHORT answers","session":"s1"}`)
	// Its neighbour in the session is found behind it.
	if !strings.HasPrefix(r.ids(), a.ID) || r.By != "words" || r.Memories[0].Category != "preference" || r.Memories[0].Session != "s1" || len(r.Memories[0].Tags) != 2 {
		t.Errorf("%+v", r)
	}
	for args, want := range map[string]string{
		`{"query":"deploys","key":"deploy","session":"s2"}`:                    elsewhere.ID,
		`{"query":"answers","tags":["style","user"]}`:                          a.ID,
		`{"query":"answers","tags":["style","no"]}`:                            "",
		`{"query":"answers","category":"preference"}`:                          a.ID,
		`{"query":"answers","where":["category^=pref","tags=no,user","!key"]}`: a.ID,
		`{"query":"answers","where":["category=preferences"]}`:                 "",
		`{"query":"answers","since":"2026-01-02T00:00:00Z"}`:                   "",
		`{"query":"nothing has these words","by":"words"}`:                     "",
	} {
		if r := as[recalled](t, c, "recall", args); r.ids() != want {
			t.Errorf("%s: %q, want %q", args, r.ids(), want)
		}
	}
	r = as[recalled](t, c, "recall", `{"query":"short answers deploys","explain":true,"per_session":1,"fragment":20}`)
	if len(r.Memories) != 2 || r.Memories[0].Session == r.Memories[1].Session {
		t.Errorf("%+v", r)
	}
	for _, m := range r.Memories {
		if !strings.Contains(m.Why, " (content") || len(m.Text) > 20 || !m.Cut && strings.Contains(m.Text, "answers") {
			t.Errorf("%+v", m)
		}
	}
	c.refuses("recall", `{"query":"x","per_session":0}`, ">=1 at per_session")
	// What is over is not there.
	now.Add(int64(61 * time.Second))
	if r := as[recalled](t, c, "recall", `{"query":"deploys"}`); !strings.HasPrefix(r.ids(), elsewhere.ID) || strings.Contains(r.ids(), k.ID) {
		t.Errorf("%+v", r)
	}
	type forgotten struct{ Forgotten, Missing []string }
	c.refuses("forget", fmt.Sprintf(`{"ids":[%q,%q],"session":"s1"}`, a.ID, b.ID), "another session")
	f := as[forgotten](t, c, "forget", fmt.Sprintf(`{"ids":[%q,"no","",%q],"session":"s1"}`, a.ID, a.ID))
	if fmt.Sprint(f) != fmt.Sprintf("{[%s] [no ]}", a.ID) {
		t.Errorf("%+v", f)
	}
}

// Pages hold what was asked for, and together everything once.
func TestPages(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), nil)
	c := connect(t, st, Options{}, nil)
	const n = 40
	for i := range n {
		text := fmt.Sprintf("word %02d %s", i, strings.Repeat("é", 10*i))
		if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprintf("m%02d", i), Content: text, Metadata: map[string]any{"session_id": "s", "tags": []any{fmt.Sprint(i % 2)}}}); err != nil {
			t.Fatal(err)
		}
	}
	for tool, args := range map[string]string{"recall": `"query":"word","limit":7`, "recent": `"limit":7,"session":"s"`} {
		for more, want := range map[string]int{"": n, `,"tags":["1"]`: n / 2, `,"max_chars":500`: n} {
			seen, pages, next := map[string]bool{}, 0, ""
			for {
				r := as[recalled](t, c, tool, "{"+args+more+next+"}")
				pages++
				chars := 0
				for _, m := range r.Memories {
					if seen[m.ID] {
						t.Fatalf("%s %s: %s comes twice", tool, more, m.ID)
					}
					seen[m.ID] = true
					chars += len([]rune(m.Text))
				}
				if len(r.Memories) > 7 || strings.Contains(more, "max_chars") && chars > 500 {
					t.Fatalf("%s %s: %d memories, %d characters", tool, more, len(r.Memories), chars)
				}
				if r.Next == "" {
					break
				}
				next = fmt.Sprintf(`,"cursor":%q`, r.Next)
			}
			if len(seen) != want || pages < want/7 {
				t.Errorf("%s %s: %d memories on %d pages", tool, more, len(seen), pages)
			}
		}
	}
	r := as[recalled](t, c, "recall", `{"query":"39","max_chars":100}`)
	if len(r.Memories) != 1 || !r.Memories[0].Cut || len([]rune(r.Memories[0].Text)) != 100 {
		t.Errorf("%+v", r)
	}
}

// With an embedder recall looks for meaning, and for words where that fails.
func TestRecallByMeaning(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	embed := func(_ context.Context, texts []string) ([][]float32, error) {
		if broken.Load() {
			return nil, errors.New("the service is down")
		}
		var all [][]float32
		for _, text := range texts {
			v := []float32{0.1, 0.1}
			if strings.Contains(text, "cat") || strings.Contains(text, "kitten") {
				v[0] = 1
			} else {
				v[1] = 1
			}
			all = append(all, v)
		}
		return all, nil
	}
	st := openStore(t, t.TempDir(), &varve.Options{Embed: embed})
	c := connect(t, st, Options{Embed: embed}, nil)
	cat := as[remembered](t, c, "remember", `{"text":"she has a cat"}`)
	as[remembered](t, c, "remember", `{"text":"the kettle is broken"}`)
	near := as[remembered](t, c, "remember", `{"text":"a kitten lives with her"}`)
	if len(near.Near) != 1 || near.Near[0].ID != cat.ID {
		t.Errorf("%+v", near)
	}
	if r := as[recalled](t, c, "recall", `{"query":"kitten","limit":1}`); r.By != "both" || len(r.Memories) != 1 || r.Next == "" {
		t.Errorf("%+v", r)
	}
	if r := as[recalled](t, c, "recall", `{"query":"kitten","by":"words"}`); r.By != "words" || r.ids() != near.ID {
		t.Errorf("%+v", r)
	}
	broken.Store(true)
	if r := as[recalled](t, c, "recall", `{"query":"cat"}`); r.By != "words" || r.ids() != cat.ID {
		t.Errorf("%+v", r)
	}
	c.refuses("recall", `{"query":"cat","by":"meaning"}`, "the service is down")
}

// Labels of any size do not make an answer larger than it may be, and what says that
// the old file was taken over is not forgotten: it would be taken over again.
func TestLabelsAndTakenOver(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), nil)
	c := connect(t, st, Options{}, nil)
	long := strings.Repeat("t", 1<<20)
	c.call("remember", map[string]any{"text": "apple pie", "tags": []string{long}, "session": "s"})
	if _, err := st.Put(t.Context(), varve.Memory{Content: "apple tart",
		Metadata: map[string]any{"key": long}}); err != nil {
		t.Fatal(err)
	}
	if text, _, isError := c.call("remember", map[string]any{"text": "apple tart", "key": long}); !isError ||
		!strings.Contains(text, "key: 1048576 bytes exceed the limit of 1024") {
		t.Errorf("%.300s", text)
	}
	c.call("remember", map[string]any{"text": "apple cake", "key": "k", "tags": []string{"sweet"}})
	for tool, args := range map[string]any{"recent": map[string]any{}, "recall": map[string]any{"query": "apple"}} {
		text, _, isError := c.call(tool, args)
		if isError || len(text) > 10_000 || strings.Count(text, " …") != 2 || !strings.Contains(text, " k] apple cake") {
			t.Errorf("%s: %d bytes: %.600s", tool, len(text), text)
		}
	}
	if text, _, isError := c.call("forget", map[string]any{"ids": []string{takenID}}); !isError {
		t.Error(text)
	}
}

// TestNearWhateverItSays: near-duplicates are found by their words also where a text has what a query
// would take for orders, or more words than a query may have.
func TestNearWhateverItSays(t *testing.T) {
	t.Parallel()
	c := connect(t, openStore(t, t.TempDir(), nil), Options{}, nil)
	var long strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&long, "word%d ", i)
	}
	for _, text := range []string{
		"Title: notes of the trip to lake Como -draft",
		`She said "the ferry leaves at nine" and -not- later, +really`,
		"from: anna tag:travel key:ferry the boat to Bellagio was late",
		long.String(),
	} {
		first := as[remembered](t, c, "remember", fmt.Sprintf(`{"text":%q}`, text))
		again := as[remembered](t, c, "remember", fmt.Sprintf(`{"text":%q}`, "Well: "+text+" indeed"))
		if len(first.Near) != 0 || len(again.Near) != 1 || again.Near[0].ID != first.ID {
			t.Errorf("%.60s: near are %.200v, then %.200v", text, first.Near, again.Near)
		}
	}
}
