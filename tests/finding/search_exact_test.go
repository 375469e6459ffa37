package finding

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/fixture"
)

// exact is a store of some memories, without sessions unless they are given, in which searches in the
// log and in the files are compared.
type exact struct {
	*testing.T
	st *varve.Store
}

func exactly(t *testing.T, memories ...varve.Memory) exact {
	t.Helper()
	st := fixture.Open(t, t.TempDir(), nil)
	b := new(varve.Batch)
	for _, m := range memories {
		b.Put(m)
	}
	if err := st.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return exact{t, st}
}

// saying returns memories with these contents, whose ids are their first words.
func saying(contents ...string) (list []varve.Memory) {
	for _, s := range contents {
		id, text, _ := strings.Cut(s, ": ")
		list = append(list, varve.Memory{ID: id, Content: text})
	}
	return list
}

// finds expects ids in their order, or, after "any", in any order.
func (e exact) finds(cases map[string]string) {
	e.Helper()
	for _, when := range []string{"in the log", "in the files"} {
		for q, want := range cases {
			hits, err := e.st.Search(e.Context(), varve.Query{Text: q, Explain: true, Fragment: 40})
			if err != nil && want != "refused" {
				e.Errorf("%s, %s: %v", q, when, err)
			}
			var ids []string
			for _, h := range hits {
				ids = append(ids, h.ID)
			}
			if s, ok := strings.CutPrefix(want, "any "); ok {
				slices.Sort(ids)
				want = s
			}
			if got := strings.Join(ids, " "); got != want && want != "refused" {
				e.Errorf("%s, %s: %q, want %q", q, when, got, want)
			}
		}
		if err := e.st.Flush(e.Context()); err != nil {
			e.Fatal(err)
		}
	}
}

// TestConditionsHold: a condition on a word that is in every text, or that has no letters, holds like
// any other.
func TestConditionsHold(t *testing.T) {
	t.Parallel()
	list := saying("yes: it is allowed to park", "no: parking is not allowed", "rain: it rains", "sun: sun again",
		"hamlet: to be or not to be", "shout: what a day!!!")
	list = append(list, varve.Memory{ID: "it", Content: "printers", Metadata: map[string]any{"tags": []any{"IT department"}}},
		varve.Memory{ID: "hr", Content: "holidays", Metadata: map[string]any{"tags": []any{"HR department"}}},
		varve.Memory{ID: "who", Content: "a song", Metadata: map[string]any{"speaker": "The Who"}})
	exactly(t, list...).finds(map[string]string{
		`"not allowed"`:           "no",
		`"is allowed"`:            "yes",
		`allowed -not`:            "yes",
		`allowed +not`:            "no hamlet",
		`+it rains`:               "any it rain yes",
		`+it`:                     "any it rain yes",
		`rains sun -it`:           "sun",
		`tag:it`:                  "it",
		`tag:IT department`:       "it",
		`tag:"IT department"`:     "it",
		`department -tag:it`:      "hr",
		`tag:it OR tag:hr`:        "any hr it",
		`"to be or not to be"`:    "hamlet",
		`"to be or to"`:           "",
		`speaker:"the who"`:       "who",
		`allowed -"not allowed"`:  "yes",
		`allowed is*`:             "no yes",
		`rains +it*`:              "any it rain yes",
		`rains sun -it*`:          "sun",
		`allowed -well-known`:     "any no yes",
		`allowed -not-allowed`:    "yes",
		`day "!!!"`:               "shout",
		`rains "!!!"`:             "",
		`day -"!!!"`:              "",
		`"not allowed" OR tag:hr`: "any hr no",
		`"allowed not" OR tag:hr`: "hr",
		`content:it rains`:        "rain yes",
		`rains tag:it`:            "it",
		`+be -not`:                "",
		`be`:                      "hamlet",
	})
}

// TestFieldOrWords: something that looks like a field in which no memory has the word is treated as
// words, and a note reports it.
func TestFieldOrWords(t *testing.T) {
	t.Parallel()
	list := saying("redis: a key and value store", "image: docker pull with tag latest",
		"dune: Dune is a title of Herbert",
		"time: note at 10:30")
	list = append(list, varve.Memory{ID: "trip", Content: "ferry", Metadata: map[string]any{"tags": []any{"travel"},
		"title": "Como"}})
	e := exactly(t, list...)
	e.finds(map[string]string{
		"key:value store":          "redis",
		"docker tag:latest":        "image",
		"title:Dune":               "dune",
		"tag:travel":               "trip",
		"title:como":               "trip",
		"docker tag:travel":        "trip",
		`tag:"docker latest"`:      "image",
		"tag:trav* dune":           "trip",
		"tag:lat*":                 "image",
		"tag:latest OR tag:travel": "trip",
		"docker -tag:latest":       "image",
		"tag:rowing":               "image",
	})
	for q, want := range map[string]string{
		"key:value store":          "key:value is treated as words",
		`tag:"docker latest" x`:    `tag:"docker latest" is treated as words`,
		"title:como":               "",
		"title:como tag:latest":    "tag:latest is treated as words",
		"tag:latest OR tag:travel": "",
		"docker":                   "",
	} {
		var notes []string
		_, err := e.st.Search(t.Context(), varve.Query{Text: q, Note: func(s string) { notes = append(notes, s) }})
		if got := strings.Join(notes, "; "); err != nil || (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, %v, want %q", q, got, err, want)
		}
	}
}

// TestScripts: texts that look equal to a reader are equal for a search.
func TestScripts(t *testing.T) {
	t.Parallel()
	exactly(t, saying("ko: \u1112\u1161\u11ab\u1100\u116e\u11a8 여행", "ja: か\u3099くせい ﾃｽﾄ", "ar: \u0627\u0653 ب",
		"ta: க\u0bc6\u0bbe",
		"bn: \u0995\u09c7\u09be", "fi: ﬁnding a ﬂat", "ss: die Straße", "big: GROSSE STRASSE", "no: Å i Lofoten",
		"a: a day", "half: ガ",
		"vi: Vie\u0323\u0302t Nam", "el: Οδός ᾳσμα", "wide: ＡＢＣ１２")...).finds(map[string]string{
		"한국":               "ko",
		"がくせい":             "ja",
		"テスト":              "ja",
		"\u0622":           "ar",
		"\u0b95\u0bca":     "ta",
		"\u0995\u09cb":     "bn",
		"finding":          "fi",
		"FLAT":             "fi",
		"strasse":          "any big ss",
		"STRASSE":          "any big ss",
		"Straße große":     "big ss",
		"Å":                "no",
		"A\u030a":          "no",
		"\u212b":           "no",
		"+å":               "no",
		"ｶﾞ":               "half",
		"Việt":             "vi",
		"ΟΔΟΣ":             "el",
		"ΑΙΣΜΑ":            "el",
		"abc12":            "wide",
		`"한국 여행"`:          "ko",
		`"die strasse"`:    "ss",
		"여행 -한국":           "",
		"finding -flat":    "",
		"lofoten -A\u030a": "",
	})
}

// TestNames: names in code, versions, emoji and words without their apostrophe are found as they are
// written.
func TestNames(t *testing.T) {
	t.Parallel()
	exactly(t, saying("cpp: written in C++ and fast", "cs: C# for games", "c: the C compiler",
		"v2: release 2.10.3 of Go", "v1: release 2.1 and 10 fixes",
		"f: call getUserById here", "g: the user has an id", "dont: I don't know", "dont2: dont panic",
		"party: 🎉 tonight", "dev: 👩🏽‍💻 at work",
		"rd: head of R&D", "uuid: 550e8400-e29b", "pi: python3.11 only", "http: class HTTPServer",
		"well: we'll see")...).finds(map[string]string{
		"C++":                 "cpp",
		"c++":                 "cpp",
		"+C++":                "cpp",
		`"in C++"`:            "cpp",
		"fast -C++":           "",
		"C#":                  "cs",
		"2.10":                "v2",
		"2.1":                 "v1",
		"release 2.10":        "v2 v1",
		`"release 2.10"`:      "v2",
		"v2.10.3":             "v2",
		"release -2.10":       "v1",
		"3.11":                "pi",
		"user id":             "any f g",
		"getUserById":         "f g",
		"+getUserById":        "f",
		"GETUSERBYID":         "f",
		"dont":                "any dont dont2",
		"don't":               "any dont dont2",
		"don’t":               "any dont dont2",
		`"i dont know"`:       "dont",
		"🎉":                   "party",
		"+🎉":                  "party",
		"tonight -🎉":          "",
		`"🎉 tonight"`:         "party",
		"👩‍💻":                 "dev",
		"👩🏻‍💻":                "dev",
		"💻":                   "dev",
		"+R&D":                "rd",
		"server":              "http",
		"httpserver":          "http",
		"well":                "",
		"550e8400-e29b":       "uuid",
		"+550e8400-e29b":      "uuid",
		"ship -550e8400-e29b": "",
	})
}

// TestNeighboursComeBehind: memories without the word itself rank behind all that have it, and are
// excluded where their neighbour is.
func TestNeighboursComeBehind(t *testing.T) {
	t.Parallel()
	var list []varve.Memory
	for i, s := range []string{"zebra zebra", "quiet", "zebra herd", "storm zebra", "calm", "storm harbour now",
		"boats left", "evening"} {
		list = append(list, varve.Memory{ID: fmt.Sprint("s", i), Content: s, Metadata: map[string]any{"session_id": "s"},
			Timestamp: time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC)})
	}
	list = append(list, varve.Memory{ID: "long", Content: "a zebra " + strings.Repeat("and many other words of all kinds ", 40)},
		varve.Memory{ID: "tagged", Content: strings.Repeat("and many other words of all kinds ", 40),
			Metadata: map[string]any{"caption": "zebra"}})
	e := exactly(t, list...)
	for _, when := range []string{"in the log", "in the files"} {
		hits, err := e.st.Search(t.Context(), varve.Query{Text: "zebra", Limit: 20, Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		behind := false
		for _, h := range hits {
			has := slices.Contains([]string{"s0", "s2", "s3", "long", "tagged"}, h.ID)
			if behind = behind || !has; behind && has {
				t.Errorf("%s: %s has the word and comes behind one that has not", when, h.ID)
			}
			sum := h.Explanation.Session
			for _, w := range h.Explanation.Words {
				sum += w.Score
			}
			if diff := sum - h.Score; diff > 1e-9 || diff < -1e-9 {
				t.Errorf("%s: %s has %v, its parts %v", when, h.ID, h.Score, sum)
			}
		}
		if len(hits) != 7 {
			t.Errorf("%s: %d hits", when, len(hits))
		}
		if err := e.st.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.finds(map[string]string{
		"zebra -storm -herd -caption:zebra -many": "s0 s1",
		"harbour -storm":           "",
		`harbour -"storm harbour"`: "",
		`harbour -"harbour storm"`: "s5 s6 s4",
		"harbour evening -storm":   "s7 s6",
	})
}
