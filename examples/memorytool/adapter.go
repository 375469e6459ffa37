package main

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/varve-db/varve/memorytool"
)

// memory adapts a memorytool.Tool to the interface for tools of the SDK's runner.
type memory struct{ tool *memorytool.Tool }

func (m memory) Name() string        { return memorytool.Name }
func (m memory) Description() string { return "" } // the API has both for a tool of this type
func (m memory) InputSchema() anthropic.BetaToolInputSchemaParam {
	return anthropic.BetaToolInputSchemaParam{}
}

// Execute answers a call. If it returns an error, the runner sends a result with is_error, whose text begins with
// "Error: ".
func (m memory) Execute(ctx context.Context, input json.RawMessage) (
	[]anthropic.BetaToolResultBlockParamContentUnion, error) {
	r := m.tool.Call(ctx, input)
	if err := r.Err(); err != nil {
		return nil, err
	}
	content := []anthropic.BetaToolResultBlockParamContentUnion{{OfText: &anthropic.BetaTextBlockParam{Text: r.Text}}}
	if r.Image != nil {
		content = append(content, anthropic.BetaToolResultBlockParamContentUnion{OfImage: &anthropic.BetaImageBlockParam{
			Source: anthropic.BetaImageBlockParamSourceUnion{OfBase64: &anthropic.BetaBase64ImageSourceParam{
				Data:      base64.StdEncoding.EncodeToString(r.Image.Data),
				MediaType: anthropic.BetaBase64ImageSourceMediaType(r.Image.MediaType),
			}},
		}})
	}
	return content, nil
}

// run has a conversation of one message with a model that has the memory tool.
func run(ctx context.Context, client anthropic.Client, model string, tool *memorytool.Tool, prompt string) (
	*anthropic.BetaMessage, error) {
	runner := client.Beta.Messages.NewToolRunner([]anthropic.BetaTool{memory{tool}}, anthropic.BetaToolRunnerParams{
		BetaMessageNewParams: anthropic.BetaMessageNewParams{
			Model:     anthropic.Model(model),
			MaxTokens: 4096,
			Messages:  []anthropic.BetaMessageParam{anthropic.NewBetaUserMessage(anthropic.NewBetaTextBlock(prompt))},
			Betas:     []anthropic.AnthropicBeta{anthropic.AnthropicBetaContextManagement2025_06_27},
		},
		MaxIterations: 20,
	})
	// The runner describes each tool by a schema. The API knows this one by its type; calls are still found by name.
	runner.Params.Tools[0] = anthropic.BetaToolUnionParam{OfMemoryTool20250818: &anthropic.BetaMemoryTool20250818Param{}}
	return runner.RunToCompletion(ctx)
}
