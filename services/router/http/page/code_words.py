"""What do the codes mean that the product gives as states and reasons, in English and in Japanese?

A code that has no row here is shown as it is. Pure.
"""

from __future__ import annotations

CODES: dict[str, tuple[str, str]] = {
    # A machine's state
    "state_ready": ("ready", "準備完了"),
    "state_silent": ("silent", "応答なし"),
    "state_paused": ("paused", "一時停止中"),
    "state_backend down": ("backend down", "モデルサーバー停止"),
    "state_draining": ("draining", "終了処理中"),
    "state_stale": ("stale", "情報が古い"),
    # Why a value of a machine is unknown
    "unknown_no_agent": ("nobody beside it measures", "そのマシンでは計測していません"),
    "unknown_silent": ("it was not heard lately", "最近の応答なし"),
    "unknown_no credit was heard": ("it has not said yet", "まだ報告なし"),
    "unknown_no heartbeat heard yet": ("it has not said yet", "まだ報告なし"),
    # A task's state
    "state_waiting": ("waiting", "待機中"),
    "state_released": ("released", "割り当て済み"),
    "state_running": ("running", "実行中"),
    "state_completed": ("completed", "完了"),
    "state_failed": ("failed", "失敗"),
    "state_cancelled": ("cancelled", "取り消し"),
    "state_dead": ("given up", "断念"),
    # Why a task waits
    "hold_waiting_for_faster": ("a faster machine is worth waiting for", "より速いマシンを待つ価値あり"),
    "hold_busy": ("every machine that could answer is busy", "回答できるマシンがすべて使用中"),
    "hold_model_full": ("as many tasks of this model run as may", "このモデルの上限に到達"),
    "hold_client_full": ("as many tasks of this client run as may", "このクライアントの上限に到達"),
    "hold_backend_full": ("as many tasks run on this backend as may", "このバックエンドの上限に到達"),
    "hold_no_worker": ("no machine that holds the model is there", "モデルを持つマシンがない"),
    "hold_no_capability": ("no machine has what the task needs", "必要な機能を持つマシンがない"),
    "hold_silent": ("no machine that could answer was heard lately", "回答できるマシンから応答がない"),
    "hold_backoff": ("the last attempt failed; a pause", "直前の試行が失敗したため間隔を置いている"),
    "hold_routing": ("the model is being chosen", "モデルを選択中"),
    "hold_no_model": ("no machine can answer this yet", "まだ回答できるマシンがない"),
    # Why a place or a start got worse
    "rise_joined_ahead": ("somebody joined ahead", "前に割り込みあり"),
    "rise_died": ("an attempt or a machine was lost", "試行またはマシンの喪失"),
    "rise_paused": ("a machine was taken out", "マシンの一時停止"),
    "rise_slower_than_predicted": ("slower than predicted", "予測より遅い"),
    # Why a candidate was left out
    "removed_model": ("does not hold the model", "モデルを保持していない"),
    "removed_kind": ("does not do what is asked", "依頼の種類に非対応"),
    "removed_tools": ("takes no tools", "ツール非対応"),
    "removed_vision": ("takes no images", "画像非対応"),
    "removed_image_urls": ("fetches no image by its address", "画像の URL に非対応"),
    "removed_capability": ("lacks a capability", "機能不足"),
    "removed_undeclared": ("does not say whether it can", "対応可否が不明"),
    "removed_worker": ("another machine was asked for", "別のマシンの指定あり"),
    "removed_target": ("not a target of the route", "ルートの対象外"),
    "removed_context": ("too little context", "コンテキスト不足"),
    "removed_digest": ("another file under the same name", "同名の別ファイル"),
    "removed_draining": ("takes no new work", "新規受付なし"),
    "removed_paused": ("paused", "一時停止中"),
    "removed_silent": ("not heard lately", "最近の応答なし"),
    "removed_room": ("no room for it", "余裕なし"),
    "removed_refused": ("its task was refused", "タスクが拒否された"),
}
