package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// texts generates memories and queries.
type texts struct {
	r                *rand.Rand
	turns, questions []string
}

// read reads the turns and questions in the file of LoCoMo.
func (t *texts) read(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var all []struct {
		Questions []struct {
			Question string `json:"question"`
		} `json:"qa"`
		Conversation map[string]json.RawMessage `json:"conversation"`
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, c := range all {
		for _, q := range c.Questions {
			t.questions = append(t.questions, q.Question)
		}
		for name, raw := range c.Conversation {
			var turns []struct {
				Text string `json:"text"`
			}
			if strings.HasPrefix(name, "session_") && json.Unmarshal(raw, &turns) == nil {
				for _, turn := range turns {
					t.turns = append(t.turns, turn.Text)
				}
			}
		}
	}
	if len(t.turns) == 0 || len(t.questions) == 0 {
		return fmt.Errorf("%s: no conversations", path)
	}
	slices.Sort(t.turns) // the members of an object come in any order
	return nil
}

// memory returns a memory of about 500 bytes.
func (t *texts) memory() string {
	var b strings.Builder
	for b.Len() < 450 {
		if t.turns != nil {
			b.WriteString(t.turns[t.r.IntN(len(t.turns))])
			b.WriteByte(' ')
		} else {
			t.word(&b)
		}
	}
	if b.Len() > 500 {
		return strings.ToValidUTF8(b.String()[:500], "")
	}
	return b.String()
}

// vector returns a random vector; nil for dimension 0.
func (t *texts) vector(dims int) []float32 {
	if dims == 0 {
		return nil
	}
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(t.r.NormFloat64())
	}
	return v
}

func (t *texts) query() string {
	if t.turns != nil {
		return t.questions[t.r.IntN(len(t.questions))]
	}
	var b strings.Builder
	for range 6 {
		t.word(&b)
	}
	return b.String()
}

func (t *texts) word(b *strings.Builder) {
	k := int(math.Pow(50_000, t.r.Float64()))
	for k += 26; k > 0; k /= 26 {
		b.WriteByte('a' + byte(k%26))
	}
	b.WriteString("on ")
}
