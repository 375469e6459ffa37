package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/served"
)

// eight connects a client to a server with the tools by default, as a host starts it that says nothing.
func eight(t *testing.T, st *varve.Store, o Options) *client {
	t.Helper()
	a, b := mcp.NewInMemoryTransports()
	ss, err := New(served.Only(st), o).Connect(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "7"}, nil).Connect(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cs.Close()
		_ = ss.Wait()
	})
	return &client{t, cs, nil}
}

// says returns the text of an answer, which must not be an error nor have structured content.
func (c *client) says(tool, args string) string {
	c.t.Helper()
	text, structured, isError := c.call(tool, args)
	if isError || structured != nil {
		c.t.Fatalf("%s %s: %s %v", tool, args, text, structured)
	}
	return text
}

// has fails unless the text has all parts.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

var inBrackets = regexp.MustCompile(`\[(…?[^ \]*]+)`)

// idIn returns the first id in an answer.
func idIn(t *testing.T, text string) string {
	t.Helper()
	m := inBrackets.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no id in %s", text)
	}
	return m[1]
}

// at returns options with a clock, and the function that moves it.
func at(start string) (varve.Options, Options, func(time.Duration)) {
	t, _ := time.ParseInLocation("2006-01-02 15:04", start, time.Local)
	var now atomic.Int64
	now.Store(t.UnixNano())
	clock := func() time.Time { return time.Unix(0, now.Load()) }
	return varve.Options{Clock: clock, Writer: &varve.Writer{Program: "host"}}, Options{Clock: clock},
		func(d time.Duration) { now.Add(int64(d)) }
}

// What every session pays before its first word: at most 9 KB for eight tools.
func TestListIsSmall(t *testing.T) {
	t.Parallel()
	c := eight(t, openStore(t, t.TempDir(), nil), Options{})
	r, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := []byte("[")
	var names []string
	for _, tool := range memoryTools() {
		tool.out = nil
		b = append(append(b, tool.json()...), ',')
		names = append(names, tool.name)
	}
	if got := strings.Join(names,
		" "); len(r.Tools) != 8 || got != "context remember recall update recent forget undo history" {
		t.Errorf("%d tools: %s", len(r.Tools), got)
	}
	if len(b) > 9000 {
		t.Errorf("the list has %d bytes", len(b))
	}
	t.Logf("the list has %d bytes, the instructions %d", len(b), len(memoryInstructions))
	for _, tool := range r.Tools {
		if tool.OutputSchema != nil {
			t.Errorf("%s declares an output", tool.Name)
		}
	}
}

// An unknown name is refused with the nearest one, null is not given, and text is taken as what it can only mean.
func TestStrictArguments(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), nil)
	c := eight(t, st, Options{})
	if _, err := st.Put(t.Context(), varve.Memory{ID: "of-another-session", Content: "apple",
		Metadata: map[string]any{"session_id": "s2"}}); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"ids":["of-another-session"],"session_id":"s1"}`: `forget: unknown argument "session_id" → did you mean session?`,
		`{"ids":["of-another-session"],"session":"s1"}`:    "another session",
		`{"id":"of-another-session"}`:                      `unknown argument "id" → did you mean ids?`,
		`{"ids":"a,b"}`:                                    `ids: expected a list such as ["a","b"]`,
		`{"ids":{"a":1}}`:                                  "ids: expected a list",
		`{"ids":["x",null]}`:                               "expected a text, received null",
		`{}`:                                               "give ids, or a key",
	} {
		c.refuses("forget", args, want)
	}
	if _, err := st.Get(t.Context(), "of-another-session"); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"query":"apple","limit":"5","tags":null,"session":null,"explain":"false"}`: "er-session · ",
		`{"query":"apple","limit":5.0,"where":"[\"session_id=s2\"]"}`:                "er-session · ",
		`{"query":"apple","where":"session_id=s2"}`:                                  "er-session · ",
		`{"query":"apple","session":"s1"}`:                                           "try without session",
		`{"query":"nothing"}`:                                                        "try fewer or other words",
	} {
		has(t, c.says("recall", args), want)
	}
	for args, want := range map[string]string{
		`{"query":"a","limit":"five"}`: `limit: expected a whole number, received "five"`,
		`{"query":"a","limit":"1 2"}`:  "expected a whole number",
		`{"query":"a","explain":"1"}`:  "expected true or false",
		`{"query":"a","explain":1}`:    "expected true or false",
		`{"query":null}`:               "query: missing",
		`{"query":["a"]}`:              "query: expected a text",
		`{"question":"a"}`:             `unknown argument "question" → did you mean query?`,
		`{"query":"a","sesion":"b"}`:   "did you mean session?",
		`{"query":"a","xyzzy":1}`:      `unknown argument "xyzzy"; the arguments are query, session`,
	} {
		c.refuses("recall", args, want)
	}
	c.says("remember",
		`{"text":"the answer","session":42,"importance":"0.5","pin":"TRUE","metadata":"{\"source\":\"desk\",\"n\":3}",
		"tags":"fruit","happened":"2026-11-20","ttl":"3600"}`)
	for m, err := range st.Memories(t.Context(), varve.InSession("42")) {
		if err != nil || m.QuickRecalScore != 0.5 || fmt.Sprint(m.Metadata["tags"]) != "[fruit pinned]" ||
			m.ExpiresAt.IsZero() ||
			m.Metadata["source"] != "desk" || fmt.Sprint(m.Metadata["n"]) != "3" ||
			m.Timestamp.Local().Format(time.DateOnly) != "2026-11-20" {
			t.Errorf("%+v %v", m, err)
		}
	}
	for args, want := range map[string]string{
		`{"text":"x","metadata":{"session_id":"s2"}}`:      "session_id is reserved → use the argument session",
		`{"text":"x","metadata":{"varve_project":"s2"}}`:   "varve_project is reserved",
		`{"text":"x","metadata":[1]}`:                      "metadata: expected an object",
		`{"text":"x","importance":2}`:                      "must be from 0 to 1",
		`{"text":"x","happened":"soon"}`:                   "happened:",
		`{"content":"x"}`:                                  `unknown argument "content" → did you mean text?`,
		`{"text":"x","scope":"world"}`:                     `expected one of "project"|"user"`,
		`{"text":"x","session":"` + lots(2048) + `"}`:      "session: 2048 bytes exceed the limit of 1024",
		`{"text":"x","replaces":"no-such-id-at-all-here"}`: "replaces:",
	} {
		c.refuses("remember", args, want)
	}
	has(t, c.says("recall", `{"query":"apple","session":"`+lots(2048)+`"}`), "nothing found")
	// arguments: null is a call without arguments
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "recent", Arguments: json.RawMessage("null")})
	if err != nil || r.IsError {
		t.Errorf("%+v %v", r, err)
	}
}

func lots(n int) string { return strings.Repeat("n", n) }

// A line has at most its content and 40 characters, whatever the memory says; none looks like two.
func TestLines(t *testing.T) {
	t.Parallel()
	so, o, _ := at("2026-11-20 12:00")
	st := openStore(t, t.TempDir(), &so)
	c := eight(t, st, o)
	c.says("remember", `{"text":"Deploys happen on Fridays","category":"decision","key":"deploy-day"}`)
	c.says("remember",
		`{"text":"first line of deploys\n[…0123456789 · 2026-11-20] forged\r\nthird\u2028fourth","category":"`+
			`a category that is longer than there is room"}`)
	if _, err := st.Put(t.Context(), varve.Memory{ID: "mine", Content: "deploys by hand",
		Metadata: map[string]any{"category": "line\nfeed"}}); err != nil {
		t.Fatal(err)
	}
	answer := c.says("recall", `{"query":"deploys"}`)
	lines := strings.Split(answer, "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines: %s", len(lines), answer)
	}
	form := regexp.MustCompile(`^\[(…[0-9a-f]{10}|mine)( · 2026-11-20)?( · [^\]]+)?\] .`)
	if strings.Count(answer, "· 2026-11-20") != 2 || !strings.Contains(lines[0], "· 2026-11-20") { // one is in a text
		t.Error(answer)
	}
	for _, l := range lines {
		_, text, _ := strings.Cut(l, "] ")
		if !form.MatchString(l) || utf8.RuneCountInString(l)-utf8.RuneCountInString(text) > headRoom {
			t.Errorf("%q", l)
		}
	}
	has(t, answer, "· decision] Deploys happen on Fridays", "first line of deploys↵[…0123456789",
		"line↵feed] deploys by hand")
}

// What is equally good is listed newest first, and what was superseded behind what took its place.
func TestNewestAndSuperseding(t *testing.T) {
	t.Parallel()
	so, o, pass := at("2026-11-20 12:00")
	c := eight(t, openStore(t, t.TempDir(), &so), o)
	for i := range 60 { // more than one page of equals
		c.says("remember", fmt.Sprintf(`{"text":"The gateway listens on port %d","session":"s%d"}`, 8000+i, i))
		pass(time.Minute)
	}
	has(t, strings.Split(c.says("recall", `{"query":"gateway port"}`), "\n")[0], "port 8059")
	old := idIn(t, c.says("remember", `{"text":"The cache cache cache cache is Redis, says everybody about the cache"}`))
	pass(time.Minute)
	got := c.says("remember", fmt.Sprintf(`{"text":"We run Valkey in the place of it","replaces":%q}`, old))
	has(t, got, "in the place of ["+old)
	lines := strings.Split(c.says("recall", `{"query":"cache"}`), "\n")
	if len(lines) < 2 || !strings.Contains(lines[0], "Valkey") || !strings.Contains(lines[1], "Redis") {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	// A ring of them ends.
	valkey := idIn(t, got)
	c.says("remember", fmt.Sprintf(`{"text":"The cache is Redis once more","key":"ring","replaces":%q}`, valkey))
	c.says("recall", `{"query":"cache Valkey Redis"}`)
}

// A key has one value, whatever wrote it, and the same text is not stored twice.
func TestOneValue(t *testing.T) {
	t.Parallel()
	so, o, pass := at("2026-11-20 12:00")
	st := openStore(t, t.TempDir(), &so)
	c := eight(t, st, o)
	put := func(id, content string, md map[string]any) {
		t.Helper()
		if _, err := st.Put(t.Context(), varve.Memory{ID: id, Content: content, Metadata: md}); err != nil {
			t.Fatal(err)
		}
	}
	count := func() int64 {
		t.Helper()
		n, err := st.Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	put("by-memctl-put", "deploys on Mondays", map[string]any{"key": "deploy", "mine": true})
	pass(time.Minute)
	put("of-another-category", "deploys on Sundays", map[string]any{"key": "deploy", "category": "fact"})
	put("of-a-session", "deploys never", map[string]any{"key": "deploy", "session_id": "s"})
	has(t, c.says("remember", `{"text":"deploys on Fridays","key":"deploy","category":"decision"}`),
		"replaced the memory that had the key: […r-category]", "removed 1 more")
	m, err := st.Get(t.Context(), "of-another-category")
	if err != nil || m.Content != "deploys on Fridays" || m.Category() != "decision" || count() != 2 {
		t.Errorf("%+v %v, %d memories", m, err, count())
	}
	has(t, c.says("undo", `{}`), "put back", "undeleted", "Mondays", "Sundays")
	if count() != 3 {
		t.Errorf("%d memories", count())
	}
	// Two clients at once.
	var all sync.WaitGroup
	for i := range 8 {
		d := eight(t, st, o)
		all.Go(func() {
			for j := range 5 {
				d.call("remember", fmt.Sprintf(`{"text":"value %d of %d","key":"new key"}`, j, i))
				d.call("remember", `{"text":"all of them say this, in the same words"}`)
			}
		})
	}
	all.Wait()
	if count() != 5 {
		t.Errorf("%d memories", count())
	}
	first := idIn(t, c.says("remember", `{"text":"The user prefers tea in the morning","ttl":60}`))
	pass(time.Second)
	again := c.says("remember", `{"text":"The user prefers tea in the morning","tags":["drink"]}`)
	has(t, again, "known already, not stored twice: ["+first)
	pass(time.Hour)
	has(t, c.says("recall", `{"query":"tea","tags":["drink"]}`), "prefers tea") // for ever, as the second call wanted
	pass(72 * time.Hour)
	near := c.says("remember", `{"text":"The user prefers tea in the mornings","key":"drink","category":"preference"}`)
	has(t, near, "remembered [", "near ["+first+" · 3 days] The user prefers tea", `forget {"ids":["`+first+`"]}`,
		`update {"id":"`+first)
	c.says("remember", `{"text":"The user prefers coffee in the mornings","key":"drink2"}`)
	has(t, c.says("remember", `{"text":"The user prefers tea in the mornings!","session":"x"}`),
		"· preference/drink · just now]")
	// With a session of another name the same text is another memory.
	c.says("remember", `{"text":"The user prefers tea in the morning","session":"s9"}`)
	has(t, c.says("recall", `{"query":"tea","session":"s9"}`), "prefers tea")
	for range 2 { // without a word to look for
		c.says("remember", `{"text":"🍵🍵"}`)
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	c := eight(t, st, Options{})
	id := idIn(t, c.says("remember",
		`{"text":"The API runs on port 8080, and logs to /var/log","key":"api","session":"s"}`))
	has(t, c.says("update", fmt.Sprintf(`{"id":%q,"old":"8080","new":"9090"}`, id)), "updated ["+id, "port 9090")
	has(t, c.says("update", `{"key":"api","session":"s","append":"It restarts at night"}`), "/var/log↵It restarts")
	has(t, c.says("update",
		fmt.Sprintf(`{"id":%q,"tags":["ops"],"pin":true,"ttl":3600,"category":"fact","metadata":{"n":1}}`, id)), "9090")
	m := only(t, st)
	if m.Content != "The API runs on port 9090, and logs to /var/log\nIt restarts at night" || m.ExpiresAt.IsZero() ||
		fmt.Sprint(m.Metadata["tags"]) != "[ops pinned]" || m.Category() != "fact" || m.Key() != "api" || m.Session() != "s" {
		t.Errorf("%+v", m)
	}
	c.says("update", fmt.Sprintf(`{"id":%q,"text":"Short","ttl":0,"pin":false}`, m.ID))
	if m = only(t, st); m.Content != "Short" || !m.ExpiresAt.IsZero() || fmt.Sprint(m.Metadata["tags"]) != "[ops]" {
		t.Errorf("%+v", m)
	}
	for args, want := range map[string]string{
		`{"text":"x"}`:                                 "give the id of a memory, or its key",
		`{"id":"` + id + `"}`:                          "nothing to change",
		`{"key":"api"}`:                                "nothing to change",
		`{"key":"api","text":" "}`:                     "text is empty",
		`{"key":"api","text":"x"}`:                     "a key belongs to its session",
		`{"id":"` + id + `","text":"a","append":"b"}`:  "give one of text, old with new, and append",
		`{"id":"` + id + `","old":"a"}`:                "old and new: give both",
		`{"id":"` + id + `","old":"nope","new":"x"}`:   "occurs 0 times",
		`{"id":"` + id + `","old":"Short","new":""}`:   "nothing would be left",
		`{"id":"` + id + `","key":"api","text":"x"}`:   "give one of them",
		`{"id":"` + id + `","session":"t","text":"x"}`: "another session",
		`{"id":"` + id[len(id)-6:] + `","text":"x"}`:   "has 6 characters, but a change needs at least 10",
		`{"id":"00000000-no-such","text":"x"}`:         "not found",
	} {
		c.refuses("update", args, want)
	}
}

func only(t *testing.T, st *varve.Store) (one varve.Memory) {
	t.Helper()
	n := 0
	for m, err := range st.Memories(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		one = m
		n++
	}
	if n != 1 {
		t.Fatalf("%d memories", n)
	}
	return one
}

// Six characters of an id read, ten change, and none that a deleted memory has changes another.
func TestEndings(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	c := eight(t, st, Options{})
	for _, id := range []string{"0190f3a5-0000-7000-8000-aaaabbbbcccc", "0190f3a5-0000-7000-8000-0000bbbbcccc",
		"0190f3a5-0000-7000-8000-111122223333"} {
		if _, err := st.Put(t.Context(), varve.Memory{ID: id, Content: "text of " + id}); err != nil {
			t.Fatal(err)
		}
	}
	has(t, c.says("history", `{"id":"223333"}`), "text of 0190f3a5-0000-7000-8000-111122223333")
	has(t, c.says("history", `{"id":"[…1122223333*"}`), "text of")
	for tool, all := range map[string]map[string]string{
		"history": {`{"id":"bbcccc"}`: "several ids", `{"id":"23333"}`: "its last 6 characters"},
		"forget": {`{"ids":["223333"]}`: "a change needs at least 10 characters of an id",
			`{"ids":["bbbbcccc"]}`: "several ids"},
	} {
		for args, want := range all {
			c.refuses(tool, args, want)
		}
	}
	has(t, c.says("forget", `{"ids":["aabbbbcccc","no-such-id-there","0190f3a5-0000-7000-8000-111122223333"]}`),
		"forgot […aabbbbcccc",
		"undo {} takes this back", "not there: no-such-id-there")
	if _, err := st.Put(t.Context(), varve.Memory{ID: "another-aabbbbcccc", Content: "x"}); err != nil {
		t.Fatal(err)
	}
	c.refuses("forget", `{"ids":["aabbbbcccc"]}`, "the id of a deleted memory also ends in")
	has(t, c.says("history", `{"id":"1122223333"}`), "2 versions", "deleted", "agent 7 (you)")
	has(t, c.says("forget", `{"ids":["another-aabbbbcccc"]}`), "forgot")
	has(t, c.says("forget", `{"ids":[]}`), "nothing to forget")
}

// A question about a time is answered by the time.
func TestTimeWords(t *testing.T) {
	t.Parallel()
	so, o, pass := at("2026-11-24 12:00") // a Tuesday
	st := openStore(t, t.TempDir(), &so)
	c := eight(t, st, o)
	c.says("remember", `{"text":"The budget is fixed","session":"a"}`)
	c.says("remember", `{"text":"The conference was in Lyon","happened":"2026-03-14"}`)
	pass(24 * time.Hour)
	c.says("remember", `{"text":"Ada left the team","session":"b"}`)
	pass(24 * time.Hour)
	c.says("remember", `{"text":"March is the month of the release"}`)
	for q, want := range map[string]string{
		"what did I tell you yesterday?":  "yesterday (2026-11-25)|Ada left",
		"What happened in March":          "march (2026-03-01 to 2026-03-31)|Lyon",
		"what happened 2 days ago":        "2 days ago (2026-11-24)|budget",
		"what did we discuss on Tuesday?": "tuesday (2026-11-24)|budget",
		"since yesterday":                 "since yesterday (since 2026-11-25)|month of the release|Ada left",
		"last month":                      "nothing in this time",
	} {
		answer := c.says("recall", fmt.Sprintf(`{"query":%q}`, q))
		has(t, answer, strings.Split(want, "|")...)
		if q == "what did I tell you yesterday?" && strings.Contains(answer, "budget") {
			t.Error(answer)
		}
	}
	has(t, c.says("recall", `{"query":"release in March"}`), "month of the release", `"march" is taken as words`)
	has(t, c.says("recall", `{"query":"port 8080"}`), "nothing found")
	for when, want := range map[string]string{
		"today": "month of the release", "yesterday": "Ada", "this week": "budget", "2026-03": "Lyon", "in March": "Lyon",
		"7d":        "budget",
		"last week": "nothing in this time", "since yesterday": "Ada",
	} {
		has(t, c.says("recent", fmt.Sprintf(`{"when":%q}`, when)), want)
	}
	has(t, c.says("recent", `{"session":"b"}`), "Ada")
	has(t, c.says("recent", `{"writer":"agent","limit":1}`), "month of the release", "more: cursor ")
	has(t, c.says("recent", `{"writer":"another"}`), "nothing in this time")
	has(t, c.says("recent", `{"since":"2026-11-25","until":"2026-11-25"}`), "Ada")
	c.refuses("recent", `{"when":"soon"}`, "when:")
	c.refuses("recent", `{"when":"today","since":"yesterday"}`, "give only one of them")
	c.refuses("recent", `{"since":"today","until":"yesterday"}`, "do not overlap")
}

// A page begins where the one before ended, whatever was forgotten in between; nothing is skipped or shown twice.
func TestPagingNeverSkips(t *testing.T) {
	t.Parallel()
	so, o, pass := at("2026-11-24 12:00")
	for _, tool := range []string{"recall", "recent"} {
		st := openStore(t, t.TempDir(), &so)
		c := eight(t, st, o)
		for i := range 20 {
			if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprintf("m%02d", i),
				Content: fmt.Sprintf("apple %s number %d", strings.Repeat("and ", i%7), i)}); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		seen, cursor := map[string]bool{}, ""
		args := `"limit":3`
		if tool == "recall" {
			args += `,"query":"apple"`
		}
		for page := 0; ; page++ {
			answer := c.says(tool, "{"+args+cursor+"}")
			for _, m := range inBrackets.FindAllStringSubmatch(answer, -1) {
				if seen[m[1]] {
					t.Fatalf("%s: %s comes twice", tool, m[1])
				}
				seen[m[1]] = true
				if page < 3 {
					c.says("forget", fmt.Sprintf(`{"ids":[%q]}`, m[1]))
				}
			}
			_, next, more := strings.Cut(answer, "more: cursor ")
			if !more {
				break
			}
			cursor = fmt.Sprintf(`,"cursor":%q`, next)
		}
		if len(seen) != 20 {
			t.Errorf("%s: %d of 20", tool, len(seen))
		}
	}
	// A server that was started again continues at the place.
	st := openStore(t, t.TempDir(), &so)
	for i := range 9 {
		if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprintf("m%02d", i),
			Content: "apple" + strings.Repeat(" pie", i)}); err != nil {
			t.Fatal(err)
		}
	}
	first := eight(t, st, o).says("recall", `{"query":"apple","limit":4}`)
	_, next, _ := strings.Cut(first, "more: cursor ")
	second := eight(t, st, o).says("recall", fmt.Sprintf(`{"query":"apple","limit":5,"cursor":%q}`, next))
	ids := map[string]bool{}
	for _, m := range inBrackets.FindAllStringSubmatch(first+second, -1) {
		ids[m[1]] = true
	}
	if len(ids) != 9 {
		t.Errorf("%s\n%s", first, second)
	}
	c := eight(t, st, o)
	_, next, _ = strings.Cut(c.says("recall", `{"query":"apple","limit":4}`), "more: cursor ")
	c.refuses("recall", fmt.Sprintf(`{"query":"pie","cursor":%q}`, next), "belongs to a call with other arguments")
}

// context is within its budget, and has what is pinned first.
func TestContext(t *testing.T) {
	t.Parallel()
	so, o, pass := at("2026-11-24 12:00")
	st := openStore(t, t.TempDir(), &so)
	c := eight(t, st, o)
	has(t, c.says("context", `{}`), "nothing is remembered yet")
	has(t, c.says("context", `{"budget":10}`), "nothing")
	c.says("remember", `{"text":"Never push to main","pin":true}`)
	c.says("remember", `{"text":"The parser is hand-written","key":"parser"}`)
	for i := range 50 {
		pass(time.Minute)
		c.says("remember", fmt.Sprintf(`{"text":"Note %d about the weather in %d words","session":"s%d"}`, i, i*i, i))
	}
	answer := c.says("context", `{"task":"rewrite the parser"}`)
	if !strings.HasPrefix(answer, "pinned:\n[") || strings.Index(answer, "relevant:") > strings.Index(answer, "recent:") {
		t.Error(answer)
	}
	has(t, answer, "Never push to main", "The parser is hand-written", "Note 49 about")
	if strings.Count(answer, "hand-written") != 1 {
		t.Error(answer)
	}
	for _, budget := range []int{1, 10, 40, 100, 1000, 1_000_000} {
		text, _, isError := c.call("context", fmt.Sprintf(`{"budget":%d,"task":"parser"}`, budget))
		if n := tokens(text); isError || n > budget && budget > 3 {
			t.Errorf("%d tokens of %d: %s", n, budget, text)
		}
		if budget < 1000 {
			has(t, text+"more", "more")
		}
	}
	has(t, c.says("context", `{"budget":100}`), "left out")
	if n := strings.Count(c.says("context", `{"budget":1000000}`), "\n["); n < 52 {
		t.Errorf("%d lines", n)
	}
	has(t, c.says("context", `{"session":"s7"}`), "Note 7 about")
	c.says("context", `{"task":"?!"}`)
	c.refuses("context", `{"budget":0}`, ">=1 at budget")
}

// A client takes back what it wrote itself, and nothing of others, whatever name these give.
func TestUndoIsOnesOwn(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	a, b := eight(t, st, Options{}), eight(t, st, Options{}) // of one name
	a.refuses("undo", `{}`, "you have written nothing")
	a.says("remember", `{"text":"a says: red","key":"colour"}`)
	b.says("remember", `{"text":"b says: blue","key":"sky"}`)
	has(t, a.says("undo", `{"preview":true}`), "would take back 1 commit", "deleted […", "a says: red")
	has(t, a.says("undo", `{}`), "took back 1 commit, 1 change", "a says: red")
	has(t, a.says("recall", `{"query":"says"}`), "b says: blue")
	has(t, a.says("undo", `{}`), "undeleted") // the undo itself
	id := idIn(t, a.says("remember", `{"text":"a says: green","key":"colour"}`))
	b.says("update", `{"key":"colour","text":"b says: grey"}`)
	a.refuses("undo", `{}`, "later changes are built upon some")
	h := a.says("history", `{"id":"`+id+`"}`)
	has(t, h, "b says: grey", "a says: green", "a says: red", "agent 7 (you)", "agent 7 (mcp-", "undo")
	version, _, _ := strings.Cut(strings.Split(h, "\n")[1], " ") // of b
	a.refuses("undo", `{"version":`+version+`}`, "is not a change of yours: you can undo only")
	has(t, b.says("undo", `{"version":"`+version+`"}`), "put back", "a says: green")
	a.says("remember", `{"text":"one more of a"}`)
	has(t, a.says("undo", `{"since":"1h"}`), "took back")
	if got := a.says("recall", `{"query":"says"}`); strings.Contains(got, "a says") || !strings.Contains(got,
		"b says: blue") {
		t.Error(got)
	}
	// One that connects again is another.
	eight(t, st, Options{}).refuses("undo", `{}`, "you have written nothing")
	a.refuses("undo", `{"version":1,"since":"1h"}`, "give one of them")
	a.refuses("undo", `{"version":99999999}`, "is not a change of yours: you can undo only")
	// A host with a session of its own.
	host := eight(t, st, Options{Session: "run-1"})
	host.says("remember", `{"text":"within a run"}`)
	has(t, host.says("undo", `{}`), "within a run")
}

// The writer of a version is the client, with an id that the server issued.
func TestIssuedID(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	eight(t, st, Options{}).says("remember", `{"text":"one"}`)
	eight(t, st, Options{Session: "run"}).says("remember", `{"text":"two"}`)
	seen := map[string]bool{}
	for c, err := range st.Log(context.Background(), varve.LogOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		id := c.Writer.Session + c.Writer.Token
		if c.Writer.Client != "agent" || c.Writer.ClientVersion != "7" || !strings.HasPrefix(id, "mcp-") || seen[id] {
			t.Errorf("%+v", c.Writer)
		}
		seen[id] = true
	}
}

// What an hour with two coding agents showed: a text that is stored with a key is not stored once more without one, an
// answer tells what it replaced and what it hides, a series of facts does not come back with each new one, and an
// undo that finds nothing says what helps.
func TestAnswersTellWhatChanged(t *testing.T) {
	t.Parallel()
	st := openStore(t, t.TempDir(), &varve.Options{Writer: &varve.Writer{Program: "host"}})
	o := in(projectA)
	o.Groups = nil
	shared, c := eight(t, st, Options{}), eight(t, st, o)
	shared.says("remember", `{"text":"reports are in UTC","key":"zone"}`)
	has(t, c.says("remember", `{"text":"reports of the shop are in CET","key":"zone"}`), "remembered [",
		"; in this project it hides the shared [", "*] with that key")
	has(t, c.says("remember", `{"text":"reports of the shop are in EET","key":"zone"}`),
		"], which was: reports of the shop are in CET")
	has(t, c.says("remember", `{"text":"reports of the shop are in EET","category":"fact"}`),
		"known already, not stored twice: [", " · fact/zone]")
	long := ""
	for i := range 6 {
		long = c.says("remember", fmt.Sprintf(`{"text":"step %d moved table t%d to schema billing"}`, i, i))
	}
	if n := strings.Count(long, "near ["); n != nearShown || !strings.Contains(long, "and 3 more like it →") {
		t.Error(long)
	}
	c.says("remember", `{"text":"the last of alpha"}`)
	d := eight(t, st, o)
	d.refuses("undo", `{}`, "you have written nothing since you connected")
	d.refuses("undo", `{}`, "memctl undo")
}
