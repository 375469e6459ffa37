package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"sync"

	"github.com/varve-db/varve/vector/embed"
)

// embedder requests vectors from a service, only once for each text: it stores the answers in a file, one JSON
// object per line.
type embedder struct {
	e     *embed.Embedder
	file  string
	mu    sync.Mutex
	known map[string][]float32
}

type kept struct {
	Text   string `json:"t"`
	Vector string `json:"v"` // vector of little-endian float32, in base64
}

func newEmbedder(e *embed.Embedder, file string) (*embedder, error) {
	c := &embedder{e: e, file: file, known: map[string][]float32{}}
	if file == "" {
		return c, nil
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var k kept
		if err := json.Unmarshal(lines.Bytes(), &k); err != nil {
			return nil, err
		}
		b, err := base64.StdEncoding.DecodeString(k.Vector)
		if err != nil {
			return nil, err
		}
		v := make([]float32, len(b)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		c.known[k.Text] = v
	}
	return c, lines.Err()
}

func (c *embedder) embed(ctx context.Context, texts []string) ([][]float32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var missing []string
	for _, text := range texts {
		if _, ok := c.known[text]; !ok {
			missing = append(missing, text)
			c.known[text] = nil
		}
	}
	if err := c.ask(ctx, missing); err != nil {
		for _, text := range missing {
			delete(c.known, text)
		}
		return nil, err
	}
	list := make([][]float32, len(texts))
	for i, text := range texts {
		list[i] = c.known[text]
	}
	return list, nil
}

func (c *embedder) ask(ctx context.Context, texts []string) error {
	if len(texts) == 0 {
		return nil
	}
	list, err := c.e.Embed(ctx, texts)
	if err != nil {
		return err
	}
	var out []byte
	for i, text := range texts {
		c.known[text] = list[i]
		var b []byte
		for _, x := range list[i] {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		line, err := json.Marshal(kept{text, base64.StdEncoding.EncodeToString(b)})
		if err != nil {
			return err
		}
		out = append(append(out, line...), '\n')
	}
	if c.file == "" {
		return nil
	}
	f, err := os.OpenFile(c.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(out)
	return errors.Join(err, f.Close())
}
