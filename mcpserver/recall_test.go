package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve"
)

// What memctl search and list can be asked for, recall and list_memories can: times, order, and how much
// meaning counts.
func TestRecallFilters(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 15, 0, 0, 0, time.UTC) // a Thursday
	clock := func() time.Time { return now }
	meaning := map[string][]float32{"trip": {0, 1}, "old": {1, 0.1}, "new": {0, 1}, "mid": {0.1, 1}}
	embed := func(_ context.Context, texts []string) ([][]float32, error) {
		var all [][]float32
		for _, text := range texts {
			word, _, _ := strings.Cut(text, " ")
			all = append(all, meaning[word])
		}
		return all, nil
	}
	st := openStore(t, t.TempDir(), &varve.Options{Clock: clock, Embed: embed})
	for id, happened := range map[string]string{"old": "2025-12-31T12:00:00Z", "mid": "2026-11-25T12:00:00Z",
		"new": "2026-11-26T12:00:00Z"} {
		at, err := time.Parse(time.RFC3339, happened)
		if err != nil {
			t.Fatal(err)
		}
		m := varve.Memory{ID: id, Content: id + strings.Repeat(" trip", map[string]int{"old": 5, "mid": 3, "new": 1}[id]),
			Timestamp: at}
		if _, err := st.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, st, Options{Clock: clock, Embed: embed}, nil)
	recall := func(more string) string {
		r := as[recalled](t, c, "recall", `{"query":"trip"`+more+`}`)
		return r.ids()
	}
	for more, want := range map[string]string{
		``:                                          "mid old new",
		`,"share":100`:                              "new mid old",
		`,"share":0.001`:                            "old mid new",
		`,"ranks":true,"share":100`:                 "new mid old",
		`,"sort":"timestamp"`:                       "old mid new",
		`,"sort":"-timestamp"`:                      "new mid old",
		`,"sort":"-timestamp","limit":2`:            "mid old",
		`,"sort":"id"`:                              "mid new old",
		`,"since":"yesterday","sort":"id"`:          "mid new",
		`,"until":"yesterday","sort":"id"`:          "mid old",
		`,"until":"2025","sort":"id"`:               "old",
		`,"since":"2026-11-26"`:                     "new",
		`,"since":"22 Nov 2026","until":"36h"`:      "",
		`,"created_since":"2026-11-27"`:             "",
		`,"created_until":"today","sort":"id"`:      "mid new old",
		`,"created_until":"yesterday"`:              "",
		`,"updated_since":"1h","sort":"id"`:         "mid new old",
		`,"updated_until":"1h"`:                     "",
		`,"by":"words","ranks":false`:               "old mid new",
		`,"by":"both","share":100`:                  "new mid old",
		`,"by":"words","recency":100,"half_life":1`: "new mid old",
		`,"by":"words","recency":0.001`:             "old mid new",
		`,"by":"words","importance":100`:            "old mid new",
		`,"by":"words","min_score":1000`:            "",
		`,"by":"words","min_score":0.001`:           "old mid new",
		`,"min_score":0.001`:                        "mid old new",
	} {
		if got := recall(more); got != want {
			t.Errorf("%s: %q, want %q", more, got, want)
		}
	}
	for more, want := range map[string]string{
		`,"until":"01/02/2026"`:   `until: "01/02/2026" may mean two different days`,
		`,"updated_since":"soon"`: `updated_since: "soon" is not a time`,
		`,"share":0`:              "share: 0: must be more than 0", `,"share":-1`: "must be more than 0",
		`,"recency":-1`:              "recency: -1: must be from 0 to 1000",
		`,"importance":1e400`:        "importance: 1e400: must be from 0 to 1000",
		`,"recency":1,"half_life":0`: "half_life: 0: must be more than 0", `,"half_life":7`: "half_life: needs recency",
		`,"sort":"score"`: "must be created, id, timestamp or updated",
		`,"sort":"foo"`:   "must be created, id, score, size, timestamp, updated",
	} {
		c.refuses("recall", `{"query":"trip"`+more+`}`, want)
	}
	for more, want := range map[string]string{
		`,"by":"words","share":5`:                    `share: applies only to a search by "both", not by "words"`,
		`,"by":"meaning","ranks":true`:               `ranks: applies only to a search by "both", not by "meaning"`,
		`,"where":["source:desk"]`:                   "write source=desk",
		`,"since":"2026-11-26","until":"2026-11-25"`: "since and until: the time ranges do not overlap",
		`,"after":"2026"`:                            "unknown argument \"after\" → did you mean since?",
	} {
		c.refuses("recall", `{"query":"trip"`+more+`}`, want)
	}
	// What is no argument chooses nothing: a call that has one is not answered as if it had none.
	c.refuses("recall", `{"query":"trip","tag":"lake"}`, `unknown argument "tag" → did you mean tags?`)
	c.refuses("recent", `{"before":"2026","zz":{"a":[1]}}`,
		`unknown argument "before" → did you mean until?; unknown argument "zz"; the arguments are when, session`)
	without := connect(t, st, Options{Clock: clock}, nil)
	without.refuses("recall", `{"query":"trip","share":5}`,
		"share: applies only to a search by words and meaning, which needs an embedder")
	// Nothing found because of a condition that nothing can fulfil is said.
	if r := as[recalled](t, c, "recall", `{"query":"trip","where":["sourc=desk"]}`); r.ids() != "" ||
		r.Note != "no memory has metadata" {
		t.Errorf("%+v", r)
	}
	if r := as[recalled](t, c, "recall", `{"query":"who is it"}`); r.ids() != "" || r.Note != "" {
		t.Errorf("a query of common words, which no memory has: %+v", r)
	}
	if r := as[recalled](t, c, "recall",
		`{"query":"title:trip"}`); r.ids() == "" ||
		r.Note != "no memory has trip in the field title: title:trip is treated as words" {
		t.Errorf("a field that no memory has: %+v", r)
	}
	if r := as[recalled](t, c, "recent",
		`{"where":["!n","n>x"]}`); r.ids() != "" || r.Note != "no memory has metadata" {
		t.Errorf("%+v", r)
	}
	if r := as[recalled](t, c, "recent", `{"where":["!n"]}`); r.ids() == "" || r.Note != "" {
		t.Errorf("%+v", r)
	}
	// When it happened is said where it is not when it was written.
	if r := as[remembered](t, c, "remember", `{"text":"a fourth"}`); r.ID == "" {
		t.Fatal(r)
	} else if l := as[recalled](t, c, "recall", `{"query":"fourth","by":"words"}`); l.Memories[0].Happened != "" {
		t.Errorf("%+v", l)
	}
}

// Scores by words are on another scale than those by both: what no memory reaches by both is not looked for
// by words, unless by both it cannot be done.
func TestRecallMinScore(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	embed := func(_ context.Context, texts []string) ([][]float32, error) {
		if broken.Load() {
			return nil, errors.New("the service is down")
		}
		return slices.Repeat([][]float32{{1, 0}}, len(texts)), nil
	}
	st := openStore(t, t.TempDir(), &varve.Options{Embed: embed})
	for i := range 30 {
		if _, err := st.Put(t.Context(), varve.Memory{ID: fmt.Sprint("m", i), Content: "nothing of it"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.Put(t.Context(), varve.Memory{ID: "it", Content: "zebra quagga okapi"}); err != nil {
		t.Fatal(err)
	}
	c := connect(t, st, Options{Embed: embed}, nil)
	best := func(more string) recalled {
		return as[recalled](t, c, "recall", `{"query":"zebra quagga okapi","limit":1`+more+`}`)
	}
	both, words := best("").Memories[0].Score, best(`,"by":"words"`).Memories[0].Score
	if words <= both {
		t.Fatalf("by both %v, by words %v", both, words)
	}
	between := fmt.Sprintf(`,"min_score":%v`, (both+words)/2)
	if r := best(between); r.By != "both" || len(r.Memories) > 0 {
		t.Errorf("%+v", r)
	}
	if r := best(between + `,"by":"words"`); r.By != "words" || r.ids() != "it" {
		t.Errorf("%+v", r)
	}
	broken.Store(true)
	if r := best(between); r.By != "words" || r.ids() != "it" {
		t.Errorf("%+v", r)
	}
}
