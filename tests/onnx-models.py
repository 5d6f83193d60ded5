# Exported models beside the logits of training: onnx-models.py STARLING DIRECTORY. DIRECTORY has the checkpoints and JSON files of
# tests/predict_models. onnx checks each model, and onnxruntime runs it.
import glob, json, os, subprocess, sys
import numpy as np
import onnx
import onnxruntime

starling, directory = sys.argv[1:]
bad = 0
for path in sorted(glob.glob(os.path.join(directory, "*.json"))):
    name = os.path.basename(path)[:-len(".json")]
    data = json.load(open(path))
    v, model = data["vertices"], path[:-len("json")] + "onnx"
    subprocess.run([starling, "export", path[:-len(".json")], "--onnx", model, "--quiet"], check=True)
    made = onnx.load(model)
    onnx.checker.check_model(made, full_check=True)
    assert sum(node.op_type == "Sqrt" for node in made.graph.node) <= 1, f"{name}: degrees more than once"
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    inputs = {i.name for i in session.get_inputs()} | {i.name for i in session.get_overridable_initializers()}
    features = np.array(data["features"], np.float32).reshape(v, -1) if data["features"] else np.eye(v, dtype=np.float32)
    feed = {"features": features}
    for key, kind in (("edge_source", np.int64), ("edge_target", np.int64), ("edge_type", np.int64), ("edge_weight", np.float32)):
        if key in data:
            feed[key] = np.array(data[key], kind)
    if data["edge_features"]:
        feed["edge_features"] = np.array(data["edge_features"], np.float32).reshape(len(feed["edge_source"]), -1)
    assert inputs == set(feed), (name, inputs, set(feed))
    logits = session.run(["logits"], feed)[0]
    wanted = np.array(data["logits"], np.float32).reshape(v, -1)
    assert logits.shape == wanted.shape, (name, logits.shape)
    difference, size = np.abs(logits - wanted).max(), max(1, np.abs(wanted).max())
    wrong = not difference <= 1e-5 * size
    bad += wrong
    print(f"{name:20} {difference:.1e} of {size:.2f}{'  FAIL' if wrong else ''}")
sys.exit(bad > 0)
