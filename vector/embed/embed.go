package embed

import (
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"
)

// firstWait is the wait before the first retry. The wait doubles before each further retry.
const firstWait = 500 * time.Millisecond

// mostCuts is the maximum number of times that Embed halves a text that is too long for the model.
const mostCuts = 8

// Embed returns the vector of each text. All vectors have the same number of dimensions. The error is an *Error or the
// error of ctx.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	all := make([][]float32, 0, len(texts))
	for batch := range slices.Chunk(texts, e.o.Batch) {
		list, err := e.batch(ctx, batch)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	for _, v := range all {
		if len(v) != len(all[0]) {
			return nil, e.wrong("one vector has %d dimensions, another one has %d", len(all[0]), len(v))
		}
	}
	return all, nil
}

// batch requests the vectors of texts. If the service refuses the request as too large, batch splits the texts into
// two smaller requests; a single text that is too long is shortened (see cut).
func (e *Embedder) batch(ctx context.Context, texts []string) ([][]float32, error) {
	list, err := e.patiently(ctx, texts)
	if !errors.Is(err, errTooMuch) {
		return list, err
	}
	if len(texts) == 1 {
		return e.cut(ctx, texts[0], err)
	}
	half := len(texts) / 2
	first, err := e.batch(ctx, texts[:half])
	if err != nil {
		return nil, err
	}
	rest, err := e.batch(ctx, texts[half:])
	return append(first, rest...), err
}

// cut requests the vector of a text that is too long for the model. It halves the text until the service accepts it,
// at most mostCuts times; with Options.NoTruncate it does not try. If the service accepts no part, the error matches
// ErrTooLong. err is the error with which the service refused the whole text.
func (e *Embedder) cut(ctx context.Context, text string, err error) ([][]float32, error) {
	for range mostCuts {
		n := len(text) / 2
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		if e.o.NoTruncate || n == 0 {
			break
		}
		text = text[:n]
		var list [][]float32
		if list, err = e.patiently(ctx, []string{text}); !errors.Is(err, errTooMuch) {
			return list, err
		}
	}
	var fault *Error
	if errors.As(err, &fault) {
		fault.Err = ErrTooLong
	}
	return nil, err
}

// patiently sends one request. After a transient failure it waits and sends the request again, at most Options.Retries
// times. It gives up earlier if the next wait would be longer than Options.MaxWait.
func (e *Embedder) patiently(ctx context.Context, texts []string) ([][]float32, error) {
	wait := firstWait
	for try := 1; ; try++ {
		list, err := e.ask(ctx, texts)
		if err == nil {
			return list, nil
		}
		if cerr := ctx.Err(); cerr != nil {
			return nil, cerr
		}
		err.Tries = try
		pause := spread(wait)
		if err.told {
			pause = err.wait
		}
		if try > e.o.Retries || !err.passing() || pause > e.o.MaxWait {
			return nil, err
		}
		if serr := e.o.Sleep(ctx, pause); serr != nil {
			return nil, serr
		}
		wait = min(2*wait, e.o.MaxWait)
	}
}

// passing reports whether the failure is transient: the same request may succeed later.
func (e *Error) passing() bool {
	switch e.Status {
	case 408, 425, 429, 500, 502, 503, 504, 529:
		return !errors.Is(e.Err, errTooMuch)
	}
	return e.Status == 0 && errors.Is(e.Err, ErrReach)
}
