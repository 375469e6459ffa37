package words_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	varve "github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/proofs"
)

// TestAnyQuery: what people and programs write is answered, or refused with its reason; from the log and
// from files.
func TestAnyQuery(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	b := new(varve.Batch)
	for id, text := range map[string]string{
		"en": `He said "the boat sails" to the port`, "th": "เรือแล่นไปที่ท่าเรือ", "ships": "🚢🌊 in the harbour", "mark": "👩‍👩‍👧", "stop": "to be or not to be",
	} {
		b.Put(varve.Memory{ID: id, Content: text})
	}
	if err := st.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	size := 1 << 18
	if proofs.Long() {
		size = 1 << 20
	}
	long := func(s string) string { return strings.Repeat(s, size/len(s)) }
	var distinct strings.Builder
	for i := 0; distinct.Len() < size; i++ {
		fmt.Fprintf(&distinct, "-x%x ", i)
	}
	for _, when := range []string{"log", "files"} {
		for _, c := range []struct {
			text string
			want string // the ids, or ErrInvalid
		}{
			{"and or", "stop"},
			{`"be or not"`, "stop"},
			{`"not be"`, ""},
			{`"to be or not"`, "stop"},
			{"the boat of the", "en"},
			{"🚢", "ships"},
			{"👩‍👩‍👧!", "mark"},
			{"👧", "mark"},
			{"!!!", "invalid"},
			{"🚢 harbours", "ships"},
			{`"the boat sails`, "en"},
			{`said "the boat" sails" to`, "en"},
			{`"" "`, "invalid"},
			{`boat"`, "en"},
			{"เรือ", "th"},
			{"ท่าเรือ", "th"},
			{`"แล่นไป"`, "th"},
			{"ทะเลสาบ", ""},
			{"-boat", "invalid"},
			{long("boat "), "en"},
			{long(`"boat `), "en"},
			{long("เรือ"), "th"},
			{long("x"), ""},
			{"boat " + distinct.String(), "invalid"},
			{long("🚢"), "ships"},
		} {
			short := fmt.Sprintf("%s: %.40q", when, c.text)
			hits, err := st.Search(t.Context(), varve.Query{Text: c.text, Fragment: 100})
			switch {
			case c.want == "invalid":
				var field *varve.FieldError
				if !errors.As(err, &field) || len(err.Error()) > 300 {
					t.Errorf("%s: %d hits, %.300v", short, len(hits), err)
				}
			case err != nil:
				t.Errorf("%s: %.300v", short, err)
			case c.want == "" && len(hits) > 0, c.want != "" && (len(hits) != 1 || hits[0].ID != c.want):
				t.Errorf("%s: %d hits, %v", short, len(hits), hits)
			}
		}
		flush(t, st)
	}
}

// many puts n memories with what of says.
func many(t *testing.T, st *varve.Store, n int, of func(i int) varve.Memory) {
	t.Helper()
	for i := 0; i < n; {
		b := new(varve.Batch)
		for end := min(i+500, n); i < end; i++ {
			b.Put(of(i))
		}
		if err := st.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShapes: one session of all, as many sessions as memories, all at one time, and a word that is in all of
// them: what is found, and what is beside it, does not depend on where it lies.
func TestShapes(t *testing.T) {
	t.Parallel()
	n := 2_000
	if proofs.Long() {
		n = 100_000
	}
	id := func(i int) string { return fmt.Sprintf("m%06d", i) }
	for name, c := range map[string]struct {
		session func(i int) string
		time    func(i int) time.Time
		beside  bool // neighbours are found too
	}{
		"one session":           {func(int) string { return "s" }, func(i int) time.Time { return time.Unix(int64(i), 0) }, true},
		"sessions of one":       {func(i int) string { return fmt.Sprint("s", i) }, func(i int) time.Time { return time.Unix(int64(i), 0) }, false},
		"one time":              {func(int) string { return "s" }, func(int) time.Time { return time.Unix(7, 0) }, true},
		"one time, no sessions": {func(int) string { return "" }, func(int) time.Time { return time.Unix(7, 0) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			st := open(t, dir)
			memory := func(i int) varve.Memory {
				m := varve.Memory{ID: id(i), Content: fmt.Sprintf("everywhere number%d", i), Timestamp: c.time(i), Metadata: map[string]any{"tags": []string{fmt.Sprint("t", i%7)}}}
				if s := c.session(i); s != "" {
					m.Metadata["session_id"] = s
				}
				return m
			}
			look := func(when string) {
				t.Helper()
				began := time.Now()
				for _, i := range []int{1, n / 2, n - 2} {
					want := []string{id(i)}
					if c.beside {
						want = append(want, id(i+1), id(i-1)) // behind it half of the weight, before it a fifth
					}
					hits, err := st.Search(t.Context(), varve.Query{Text: fmt.Sprint("number", i)})
					var got []string
					for _, h := range hits {
						got = append(got, h.ID)
					}
					if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%s: %q, want %q, %v", when, got, want, err)
					}
				}
				if hits, err := st.Search(t.Context(), varve.Query{Text: "everywhere", Limit: 5}); err != nil || len(hits) != 5 || hits[0].Score <= 0 {
					t.Errorf("%s: %d hits, %v", when, len(hits), err)
				}
				if got := listing(t, st, "timestamp", n-3, 2, nil); fmt.Sprint(got) != fmt.Sprint([]string{id(n - 3), id(n - 2), id(n - 1)}) {
					t.Errorf("%s: %q", when, got)
				}
				sessions := map[string]bool{}
				for i := range n {
					sessions[c.session(i)] = true
				}
				delete(sessions, "")
				found := 0
				for s, err := range st.Sessions().All(t.Context()) {
					if found++; err != nil || !sessions[s.ID] || s.Memories != int64(n/len(sessions)) {
						t.Fatalf("%s: %+v, %v", when, s, err)
					}
				}
				if found != len(sessions) {
					t.Errorf("%s: %d sessions, want %d", when, found, len(sessions))
				}
				if k, err := st.Count(t.Context(), varve.WithTag("t3")); err != nil || k != int64((n+3)/7) {
					t.Errorf("%s: %d have a tag, %v", when, k, err)
				}
				t.Logf("%s: %v", when, time.Since(began))
			}
			// In another order than by time, in rounds: each row is put between others.
			order := func(i int) int { return i * 7919 % n }
			part := n / 10
			for from := 0; from < n; from += part {
				many(t, st, part, func(i int) varve.Memory { return memory(order(from + i)) })
				if from < n-part {
					flush(t, st)
				}
			}
			look("files and log")
			flush(t, st)
			look("files")
			clean(t, st)
			if err := st.Admin().RebuildIndex(t.Context()); err != nil {
				t.Fatal(err)
			}
			flush(t, st)
			look("rebuilt")
		})
	}
}
