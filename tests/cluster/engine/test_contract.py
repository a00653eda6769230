"""What every engine promises, kept on a real cluster: the tests are those of `tests/engines/test_contract.py`."""

from tests.engines.test_contract import (  # noqa: F401 - collected from here with this folder's fixtures
    test_a_job_may_be_suspended_from_the_beginning,
    test_a_job_runs_to_its_end,
    test_a_job_that_was_never_applied_is_gone_and_can_be_stopped,
    test_a_stopped_job_is_gone_and_stopping_it_again_is_fine,
    test_a_suspended_job_has_no_pods_and_runs_again_when_resumed,
    test_changes_name_the_jobs_of_which_there_are_news,
    test_the_same_call_twice_makes_no_second_job,
    test_two_jobs_of_one_name_are_two_jobs,
)
