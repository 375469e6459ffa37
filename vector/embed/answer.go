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
	// maximum number of dimensions of a vector: the maximum of Options.Dimensions, and of a store by default
	mostDimensions = 1 << 16
	numberBytes    = 40       // maximum number of bytes in the text of a number, including the separator
	overheadBytes  = 64 << 10 // number of bytes allowed for other parts of the answer, and again per vector
	// maximum number of bytes of one name, string or number, in addition to the bytes that a Decoder reads ahead
	tokenBytes = 1 << 20
)

// answer parses the vectors in a service's answer.
type answer struct {
	e     *Embedder
	texts int
	in    *limited
	dec   *jsontext.Decoder
	list  [][]float32 // the vectors, by index of the text
	given int         // number of vectors read
}

// vectors parses the answer of the service, which must have one vector for each text.
func (e *Embedder) vectors(body io.Reader, texts int) ([][]float32, *Error) {
	a := &answer{e: e, texts: texts, list: make([][]float32, texts), in: &limited{r: body, left: e.mostBytes(texts)}}
	a.dec = jsontext.NewDecoder(a.in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := a.read(); err != nil {
		var fault *Error
		switch {
		case a.in.over:
			return nil, e.wrong("the answer is longer than %d bytes, or one part of it longer than %d", e.mostBytes(texts),
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

// mostBytes returns the maximum length, in bytes, of the service's answer for this number of texts.
func (e *Embedder) mostBytes(texts int) int64 {
	each := int64(e.most())*numberBytes + overheadBytes
	return min(e.o.MaxBytes, int64(texts)*each+overheadBytes)
}

// most returns the maximum number of dimensions of a vector.
func (e *Embedder) most() int {
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
		return errors.Join(errors.New("data after the answer"), err)
	}
	return nil
}

// item parses {"index":0,"embedding":[…]}, the element at index at of the answer's list.
func (a *answer) item(at int) error {
	var v []float32
	err := a.object(func(member string) (err error) {
		switch {
		case strings.EqualFold(member, "index") && a.dec.PeekKind() == '0':
			var n jsontext.Token
			if n, err = a.token(); err == nil {
				at, err = strconv.Atoi(n.String())
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
	if at < 0 || at >= a.texts || a.list[at] != nil || v == nil {
		return a.e.wrong("vector %d of %d is missing, or occurs twice", at, a.texts)
	}
	a.list[at] = v
	return nil
}

// vector parses a list of numbers; null is nil.
func (a *answer) vector() ([]float32, error) {
	if a.dec.PeekKind() == 'n' {
		return nil, a.skip()
	}
	v := make([]float32, 0, max(len(a.list[0]), 16))
	err := a.array(func(i int) error {
		if i == a.e.most() {
			return a.e.wrong("a vector has more than %d dimensions", a.e.most())
		}
		t, err := a.token()
		if err != nil {
			return err
		}
		if t.Kind() != '0' {
			return fmt.Errorf("a vector has %s among its numbers", t.Kind())
		}
		f, err := strconv.ParseFloat(t.String(), 32)
		v = append(v, float32(f))
		return err
	})
	return v, err
}

// object calls each with the name of each member of an object; each must read the value. null has no members.
func (a *answer) object(each func(name string) error) error {
	t, err := a.token()
	if err != nil || t.Kind() == 'n' {
		return err
	}
	if t.Kind() != '{' {
		return fmt.Errorf("%s instead of an object", t.Kind())
	}
	for a.dec.PeekKind() != '}' {
		if t, err = a.token(); err == nil {
			err = each(t.String())
		}
		if err != nil {
			return err
		}
	}
	_, err = a.token()
	return err
}

// array calls each for each element of a list; each must read the element. null has no elements.
func (a *answer) array(each func(i int) error) error {
	t, err := a.token()
	if err != nil || t.Kind() == 'n' {
		return err
	}
	if t.Kind() != '[' {
		return fmt.Errorf("%s instead of a list", t.Kind())
	}
	for i := 0; a.dec.PeekKind() != ']'; i++ {
		if err := each(i); err != nil {
			return err
		}
	}
	_, err = a.token()
	return err
}

// skip reads a value and discards it.
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

// limited is a reader that returns at most left bytes, and at most tokenBytes for one JSON token.
type limited struct {
	r    io.Reader
	left int64
	part int  // number of bytes since the last token
	over bool // a limit was exceeded
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
