import type { Texts } from "../types";

export const phase: Texts<"phase"> = {
  Queued: "순서 대기 중",
  Pending: "자원 대기 중",
  Pulling: "이미지 받는 중",
  Initializing: "준비 중",
  Running: "실행 중",
  Restarting: "재시작 중",
  Suspended: "일시 중지됨",
  Complete: "완료",
  Failed: "실패",
  Deleting: "삭제 중",
  QueuedMeans: "할당량 또는 대기열 순서를 기다립니다",
  PendingMeans: "파드를 배치할 노드를 기다립니다",
  PullingMeans: "노드가 컨테이너 이미지를 받고 있습니다",
  InitializingMeans: "코드, 데이터 또는 설정을 준비하고 있습니다",
  RunningMeans: "모든 노드에서 학습이 진행 중입니다",
  RestartingMeans: "오류가 발생하여 모든 노드를 재시작합니다",
  SuspendedMeans: "요청에 따라 중지되었습니다. 재개하면 파드가 다시 시작됩니다",
  CompleteMeans: "모든 노드가 정상적으로 끝났습니다",
  FailedMeans: "성공하지 못하고 끝났으며 다시 시도하지 않습니다",
  DeletingMeans: "관련 객체를 제거하고 있습니다",
};
