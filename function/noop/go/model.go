package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"

	"framestorm.local/function/shell"
)

// As much as a model server takes at once; what comes is read and forgotten.
const maxMessageBytes = 256 << 20

// By the Open Inference Protocol (V2), every model is there and answers at once, so that what is left is the time of
// the caller and the way: https://github.com/kserve/open-inference-protocol
var modelRoutes = []shell.Route{
	{Pattern: "GET /v2/models/{model}", Handler: answeringJSON(`{"name": %q, "versions": ["1"], "platform": "noop", ` +
		`"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}], ` +
		`"outputs": [{"name": "y", "datatype": "FP32", "shape": [1]}]}`)},
	{Pattern: "GET /v2/models/{model}/ready", Handler: answeringJSON(`{"name": %q, "ready": true}`)},
	{Pattern: "POST /v2/models/{model}/infer", Handler: answeringJSON(`{"model_name": %q, "model_version": "1", "id": "1", ` +
		`"outputs": [{"name": "y", "datatype": "FP32", "shape": [1], "data": [0]}]}`)},
	{Pattern: "POST /inference.GRPCInferenceService/ModelMetadata", Handler: answeringGRPC(message(
		text(1, "noop"), text(2, "1"), text(3, "noop"),
		// A size of -1 has ten bytes.
		field(4, message(text(1, "x"), text(2, "FP32"), field(3, append(binary.AppendUvarint(nil, 1<<64-1), 4)))),
		field(5, message(text(1, "y"), text(2, "FP32"), field(3, []byte{1}))),
	))},
	{Pattern: "POST /inference.GRPCInferenceService/ModelInfer", Handler: answeringGRPC(message(
		text(1, "noop"), text(2, "1"),
		field(5, message(text(1, "y"), text(2, "FP32"), field(3, []byte{1}))),
		field(6, make([]byte, 4)),
	))},
}

func answeringJSON(form string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isRead(w, r) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, form, r.PathValue("model"))
	})
}

// answeringGRPC answers every call by one message:
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
func answeringGRPC(answer []byte) http.Handler {
	framed := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(answer))), answer...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isRead(w, r) {
			return
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = w.Write(framed)
		w.Header().Set("Grpc-Status", "0")
	})
}

// isRead reads the body and forgets it; if it is too large, that is answered.
func isRead(w http.ResponseWriter, r *http.Request) bool {
	_, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxMessageBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
	}
	return err == nil
}

// message, text and field write protobuf: https://protobuf.dev/programming-guides/encoding/
func message(fields ...[]byte) []byte {
	var all []byte
	for _, each := range fields {
		all = append(all, each...)
	}
	return all
}

func text(number uint64, value string) []byte { return field(number, []byte(value)) }

func field(number uint64, value []byte) []byte {
	const withLength = 2
	head := binary.AppendUvarint(nil, number<<3|withLength)
	return append(binary.AppendUvarint(head, uint64(len(value))), value...)
}
