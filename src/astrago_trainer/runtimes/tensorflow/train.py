"""Distributed TensorFlow sample: a small image classifier under MultiWorkerMirroredStrategy.

The workers find each other through TF_CONFIG; without it there is one worker. The pictures are made
here, so nothing is downloaded. EPOCHS, BATCH_SIZE (per replica) and SAMPLES come from the
environment. SIGTERM is left to its default, which ends the process with code 143: every step needs
all workers, and a 0 would tell Kubernetes that the training is finished.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf

CLASSES = 10


def main() -> None:
    sys.stdout.reconfigure(encoding="utf-8")  # whatever the image's locale is
    epochs = int(os.environ.get("EPOCHS", "3"))
    batch_size = int(os.environ.get("BATCH_SIZE", "64"))
    samples = int(os.environ.get("SAMPLES", "6000"))
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    index = config.get("task", {}).get("index", 0)
    workers = len(config.get("cluster", {}).get("worker", ["localhost"]))
    if config:
        print(f"✅ TF_CONFIG 로드 완료: Worker {index} (TF_CONFIG loaded)", flush=True)
    else:
        print("⚠️ TF_CONFIG 없음: Worker 0 (TF_CONFIG is not set)", flush=True)

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    replicas = strategy.num_replicas_in_sync
    print(f"✅ Worker {index} initialized with {replicas} replicas", flush=True)

    batches = make_batches(samples, batch_size * replicas)
    with strategy.scope():
        model = build_model()
    if index == 0:
        print(f"🚀 분산 학습 시작 (총 {workers}개 워커)", flush=True)
    history = model.fit(batches, epochs=epochs, verbose=2 if index == 0 else 0)
    if index == 0:
        print("🎉 TensorFlow 분산 학습 완료! (training finished)", flush=True)
        print(f"📊 노드 수: {workers}", flush=True)
        print(f"🎯 최종 Accuracy: {history.history['accuracy'][-1]:.4f}", flush=True)


def make_batches(samples: int, batch_size: int) -> tf.data.Dataset:
    """Draw pictures that can be learned, and let every worker take its own share of each batch."""
    generator = np.random.default_rng(0)
    patterns = generator.random((CLASSES, 28, 28, 1), dtype=np.float32)
    labels = generator.integers(CLASSES, size=samples)
    noise = generator.standard_normal((samples, 28, 28, 1), dtype=np.float32)
    batches = (
        tf.data.Dataset.from_tensor_slices((patterns[labels] + 0.5 * noise, labels))
        .shuffle(samples, seed=0)
        .batch(batch_size, drop_remainder=True)  # equal shares: all replicas take the same steps
    )
    options = tf.data.Options()
    # By rows, not by files: there are none.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return batches.with_options(options)


def build_model() -> tf.keras.Model:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Conv2D(32, 3, padding="same", activation="relu", input_shape=(28, 28, 1)),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(CLASSES),
        ]
    )
    model.compile(
        optimizer=tf.keras.optimizers.Adam(1e-3),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


if __name__ == "__main__":
    main()
