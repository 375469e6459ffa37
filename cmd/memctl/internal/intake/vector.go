package intake

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/varve-db/varve/memstore"
)

// Numbers parses an embedding. s is a JSON array, the name of a file with a JSON array, or "-" for a JSON array
// read from stdin. argument is the name of the argument in errors. limit is the maximum number of bytes that are
// read.
func Numbers(ctx context.Context, stdin io.Reader, argument, s string, limit int) ([]float32, error) {
	b := []byte(strings.TrimSpace(s))
	if len(b) > 0 && b[0] != '[' {
		var err error
		if b, err = Slurp(ctx, stdin, s, limit); err != nil {
			return nil, err
		}
	}
	return floats(argument, b)
}

// floats parses a JSON list of numbers, in every form in which a document may contain an embedding. argument is
// the name of the argument in errors.
func floats(argument string, b []byte) ([]float32, error) {
	// Otherwise an error would have the offset in the object built below.
	if err := json.Unmarshal(b, new(json.RawMessage)); err != nil {
		return nil, Invalid(argument, err)
	}
	m, err := memstore.Decode(slices.Concat([]byte(`{"embedding":`), b, []byte("}")),
		memstore.DecodeOptions{IDOptional: true})
	if err != nil {
		return nil, Invalid(argument, err)
	}
	return m.Embedding, nil
}

// Vector reads an embedding. name is a JSON list of numbers, as for put --embedding, or the name of a file that
// has a JSON list of numbers or little-endian float32 values; "-" means stdin. argument is the name of the
// argument in errors.
func Vector(ctx context.Context, stdin io.Reader, argument, name string, limits memstore.Limits) ([]float32, error) {
	if text := strings.TrimSpace(name); strings.HasPrefix(text, "[") {
		return floats(argument, []byte(text))
	}
	b, err := Slurp(ctx, stdin, name, 32*limits.EmbeddingDim)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(b))
	if strings.HasPrefix(text, "[") {
		v, err := floats(argument, []byte(text))
		if err == nil || len(b)%4 != 0 || strings.HasSuffix(text, "]") {
			return v, err
		}
	}
	if len(b) == 0 || len(b)%4 != 0 {
		return nil, Invalid(argument,
			errors.New("the file has neither a JSON list of numbers nor float32 values: its length is not a multiple of 4"))
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v, nil
}
