package embed

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits for the answer of an embedding service, which comes from another machine and has an unknown size. An
// Embedder parses the answer while it reads it, and counts vectors and numbers before it allocates memory for them.
// So an answer takes no more memory than the requested vectors may take, whatever else it contains.
const (
	// mostDimensions is the maximum number of dimensions of a vector if Options.Dimensions is 0. A store has the same
	// limit by default.
	mostDimensions = 1 << 16
	numberBytes    = 40       // maximum number of bytes in the text of a number, including the separator
	overheadBytes  = 64 << 10 // number of bytes allowed for other parts of the answer, and again per vector
	// tokenBytes is the maximum number of bytes of one name, string or number in the answer. Bytes that the Decoder
	// reads ahead do not count.
	tokenBytes = 1 << 20
)

// answer is the state of parsing the answer of an embedding service.
type answer struct {
	e     *Embedder
	texts int
	in    *limited
	dec   *jsontext.Decoder
	list  [][]float32 // the vectors, by index of the text
	given int         // number of vectors read
}

// vectors parses the answer of the service and returns one vector for each text. It returns an error if the answer is
// invalid or too large, or if the number or the dimensions of the vectors are wrong.
func (e *Embedder) vectors(body io.Reader, texts int) ([][]float32, *Error) {
	a := &answer{e: e, texts: texts, list: make([][]float32, texts), in: &limited{r: body, left: e.mostBytes(texts)}}
	a.dec = jsontext.NewDecoder(a.in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := a.read(); err != nil {
		var fault *Error
		switch {
		case a.in.over:
			return nil, e.wrong("the answer exceeds %d bytes, or one string or number in the answer exceeds %d bytes",
				e.mostBytes(texts),
				tokenBytes)
		case errors.As(err, &fault):
			return nil, fault
		case a.in.err != nil:
			return nil, e.unreached(a.in.err)
		}
		return nil, e.wrong("%v", err)
	}
	if a.given != texts {
		return nil, e.wrong("the service returned %d vectors for %d texts", a.given, texts)
	}
	for i, v := range a.list {
		want := len(a.list[0])
		if e.o.Dimensions > 0 {
			want = e.o.Dimensions
		}
		if len(v) == 0 || len(v) != want {
			return nil, e.wrong("vector %d has %d dimensions, not %d", i, len(v), want)
		}
	}
	return a.list, nil
}

// mostBytes returns the maximum length, in bytes, of the service's answer to a request with this number of texts.
func (e *Embedder) mostBytes(texts int) int64 {
	each := int64(e.maxDimensions())*numberBytes + overheadBytes
	return min(e.o.MaxBytes, int64(texts)*each+overheadBytes)
}

// maxDimensions returns the maximum number of dimensions of a vector in an answer.
func (e *Embedder) maxDimensions() int {
	if e.o.Dimensions > 0 {
		return e.o.Dimensions
	}
	return mostDimensions
}

func (a *answer) read() error {
	name := "data"
	if a.e.o.Protocol != OpenAI {
		name = "embeddings"
	}
	err := a.object(func(member string) error {
		if !strings.EqualFold(member, name) {
			return a.skip()
		}
		return a.array(func(i int) error {
			if a.given++; a.given > a.texts {
				return a.e.wrong("the service returned more than %d vectors for %d texts", a.texts, a.texts)
			}
			if a.e.o.Protocol == OpenAI {
				return a.item(i)
			}
			v, err := a.vector()
			a.list[i] = v
			return err
		})
	})
	if err != nil {
		return err
	}
	if _, err := a.token(); !errors.Is(err, io.EOF) {
		return errors.Join(errors.New("unexpected data after the JSON of the answer"), err)
	}
	return nil
}

// item parses one element of the list in an answer of the OpenAI protocol, {"index":0,"embedding":[…]}. i is the
// position of the element in the list; item uses i if the element has no index.
func (a *answer) item(i int) error {
	var v []float32
	err := a.object(func(member string) (err error) {
		switch {
		case strings.EqualFold(member, "index") && a.dec.PeekKind() == '0':
			var n jsontext.Token
			if n, err = a.token(); err == nil {
				i, err = strconv.Atoi(n.String())
			}
		case strings.EqualFold(member, "embedding"):
			v, err = a.vector()
		default:
			err = a.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if i < 0 || i >= a.texts || a.list[i] != nil || v == nil {
		return a.e.wrong("vector %d of %d is missing or occurs twice", i, a.texts)
	}
	a.list[i] = v
	return nil
}

// vector parses a list of numbers. It returns nil for null.
func (a *answer) vector() ([]float32, error) {
	if a.dec.PeekKind() == 'n' {
		return nil, a.skip()
	}
	v := make([]float32, 0, max(len(a.list[0]), 16))
	err := a.array(func(i int) error {
		if i == a.e.maxDimensions() {
			return a.e.wrong("a vector has more than %d dimensions", a.e.maxDimensions())
		}
		t, err := a.token()
		if err != nil {
			return err
		}
		if t.Kind() != '0' {
			return fmt.Errorf("a vector has an element that is not a number: %s", t.Kind())
		}
		f, err := strconv.ParseFloat(t.String(), 32)
		v = append(v, float32(f))
		return err
	})
	return v, err
}

// object parses a JSON object, and calls f with the name of each member. f must read the value of the member. null
// counts as an object without members.
func (a *answer) object(f func(name string) error) error {
	t, err := a.token()
	if err != nil || t.Kind() == 'n' {
		return err
	}
	if t.Kind() != '{' {
		return fmt.Errorf("the answer has %s instead of an object", t.Kind())
	}
	for a.dec.PeekKind() != '}' {
		if t, err = a.token(); err == nil {
			err = f(t.String())
		}
		if err != nil {
			return err
		}
	}
	_, err = a.token()
	return err
}

// array parses a JSON list, and calls f with the index of each element. f must read the element. null counts as an
// empty list.
func (a *answer) array(f func(i int) error) error {
	t, err := a.token()
	if err != nil || t.Kind() == 'n' {
		return err
	}
	if t.Kind() != '[' {
		return fmt.Errorf("the answer has %s instead of a list", t.Kind())
	}
	for i := 0; a.dec.PeekKind() != ']'; i++ {
		if err := f(i); err != nil {
			return err
		}
	}
	_, err = a.token()
	return err
}

// skip reads the next JSON value of the answer and discards it.
func (a *answer) skip() error {
	for depth := a.dec.StackDepth(); ; {
		if _, err := a.token(); err != nil || a.dec.StackDepth() <= depth {
			return err
		}
	}
}

func (a *answer) token() (jsontext.Token, error) {
	a.in.part = 0
	return a.dec.ReadToken()
}

// limited is a reader with two limits. It returns an error if more bytes are read than left allows, or if one JSON
// token needs more than about tokenBytes.
type limited struct {
	r    io.Reader
	left int64 // number of bytes that may still be read
	part int   // number of bytes read since the last token
	over bool  // a limit was exceeded
	err  error
}

func (l *limited) Read(b []byte) (int, error) {
	if l.part > tokenBytes {
		l.over = true
		return 0, io.ErrUnexpectedEOF
	}
	b = b[:min(int64(len(b)), l.left+1)]
	n, err := l.r.Read(b)
	l.left -= int64(n)
	l.part += n
	if l.left < 0 {
		l.over = true
		return 0, io.ErrUnexpectedEOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		l.err = err
	}
	return n, err
}
