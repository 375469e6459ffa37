package embed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// A huge answer is refused, or read, within the memory of the requested vectors: each of these took up
// to 40 times its size when it was decoded as a whole: 2.2 GB for 60 MB.
func TestFloods(t *testing.T) {
	const size = 20 << 20
	flood := func(open, fill, end string) []byte {
		b := make([]byte, 0, size+100)
		b = append(b, open...)
		b = append(b, bytes.Repeat([]byte(fill), size/len(fill))...)
		return append(b, end...)
	}
	texts := make([]string, 64)
	for i := range texts {
		texts[i] = fmt.Sprint(i)
	}
	for name, body := range map[string][]byte{
		"items":                  flood(`{"data":[`, `{},`, `{}]}`),
		"items without an end":   flood(`{"data":[`, `[],`, ``),
		"numbers":                flood(`{"data":[{"embedding":[`, `0,`, `0]}]}`),
		"empty lists":            flood(`{"embeddings":[[1],`, `[],`, `[]]}`),
		"one long string":        flood(`{"object":"`, `list`, `"}`),
		"one long number":        flood(`{"usage":1`, `0000`, `}`),
		"one long name":          flood(`{"`, `name`, `":1}`),
		"members":                flood(`{`, `"a":1,`, `"a":1}`),
		"members of another one": flood(`{"usage":{`, `"a":{},`, `"a":1}}`),
		"white space":            flood(`{`, `    `, `}`),
		"depth":                  flood(`{"usage":`, `[`, ``),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ seen) bool {
				_, _ = w.Write(body)
				return true
			})
			for _, protocol := range []Protocol{OpenAI, Ollama} {
				e, _ := embedder(t, s, func(o *Options) { o.Protocol = protocol })
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := e.Embed(context.Background(), texts)
				runtime.ReadMemStats(&after)
				if !errors.Is(err, ErrAnswer) {
					t.Errorf("%s: %v", protocol, err)
				}
				if n := after.TotalAlloc - before.TotalAlloc; n > 24<<20 {
					t.Errorf("%s: %d MiB were allocated", protocol, n>>20)
				}
			}
		})
	}
}

// Valid answers are read as before.
func TestAnswers(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":[{"embedding":[1,2.5e0],"index":0,"x":{"y":[1,{"z":null}]}}],"usage":{"a":[[]]}}`: "",
		`{"DATA":[{"Embedding":[1,2]}]}`:                              "",
		`{"object":"list","data":[{"embedding":[1,2],"index":null}]}`: "",
		`{"data":[{"embedding":null}]}`:                               "missing",
		`{"data":[{"embedding":[1,"2"]}]}`:                            "that is not a number",
		`{"data":[{"embedding":[1,1e999]}]}`:                          "out of range",
		`{"data":[{"embedding":[1,2],"index":1}]}`:                    "missing",
		`{"data":[{"embedding":[1,2],"index":18446744073709551616}]}`: "out of range",
		`{"data":[{"embedding":[1]},{"embedding":[1]}]}`:              "more than 1",
		`{"data":[]}`:                    "0 vectors for 1",
		`{"data":null}`:                  "0 vectors for 1",
		`{"data":{"embedding":[1]}}`:     "instead of a list",
		`[]`:                             "instead of an object",
		`{"data":[{"embedding":[1]}]} {`: "data after",
		`{"data":[{"embedding":[1`:       "EOF",
		``:                               "EOF",
	} {
		s := serve(t, func(w http.ResponseWriter, _ seen) bool {
			_, _ = w.Write([]byte(body))
			return true
		})
		e, _ := embedder(t, s, func(o *Options) { o.Protocol = OpenAI })
		list, err := e.Embed(context.Background(), []string{"x"})
		switch {
		case want == "" && (err != nil || len(list) != 1 || len(list[0]) != 2):
			t.Errorf("%s: %v, %v", body, list, err)
		case want != "" && (!errors.Is(err, ErrAnswer) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", body, err)
		}
	}
	s := serve(t, func(w http.ResponseWriter, _ seen) bool {
		_, _ = w.Write([]byte(`{"data":[{"embedding":[` + strings.Repeat("0,", 1<<16) + `0]}]}`))
		return true
	})
	e, _ := embedder(t, s, nil)
	if _, err := e.Embed(context.Background(), []string{"x"}); err == nil || !strings.Contains(err.Error(), "65536 dimensions") {
		t.Error(err)
	}
}
